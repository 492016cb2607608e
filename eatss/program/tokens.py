"""C and CUDA text as tokens, and the names of a C source in generated text.

Comments and white space are left out; a directive of the preprocessor is one token. Nothing is
expanded, so what macros hide stays hidden.

A card compiles the text after CUDA's headers, and a CPU after those of C. Words of C++, names that
the text uses itself and macros of all these headers are no names for anything of the source. The
size macros of a source are set by macros of other names (:func:`size_macro`), so that no header
ever sees them. Functions of ``math.h`` that the text never calls (``y1``, ``j0``, ``gamma``) may be
names of arrays and variables: the text declares such a name in a scope of its own, where it hides
the function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Literal, TypeAlias, cast

from eatss.base.frozen import fixed
from eatss.program.expression import IntExpr, Name, c_text, names_in, substitute

Kind: TypeAlias = Literal["directive", "text", "word", "number", "operator"]

_TOKEN = re.compile(
    r"""
    (?P<directive> ^[ \t]*\#(?: \\\r?\n | //[^\n]* | /\*.*?\*/ | [^\n] )* )
    | (?P<blank> \s | \\\r?\n | //(?: \\\r?\n | [^\n] )* | /\*.*?(?:\*/|\Z) )
    | (?P<text> (?:u8|[uUL])? (?:
          R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"
        | "(?: \\. | [^"\\\n] )*"
        | '(?: \\. | [^'\\\n] )*' ) )
    | (?P<word> [^\W\d]\w* )
    | (?P<number> \.?\d(?: [eEpP][+-] | '\w | [\w.] )* )
    | (?P<operator> <<<|>>>|<<=|>>=|\.\.\.|->\*|::|->|\+\+|--|<<|>>|[-+*/%&|^!=<>]=|&&|\|\||. )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


@fixed
class Token:
    """A token, and where in the text it starts and ends."""

    kind: Kind
    text: str
    start: int
    end: int


@fixed
class Function:
    """The definition of a function: its parameters and its body, without the brackets."""

    name: str
    parameters: tuple[Token, ...]
    body: tuple[Token, ...]


@lru_cache(maxsize=4)
def tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text in their order."""
    return tuple(
        Token(cast("Kind", match.lastgroup), match[0], match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "blank"
    )


def closing(found: Sequence[Token], opening: int) -> int:
    """Return the place of the bracket that closes the one at ``opening``, or the number of all."""
    opened = found[opening].text
    closed = {"(": ")", "{": "}", "[": "]"}[opened]
    depth = 0
    for place in range(opening, len(found)):
        depth += (found[place].text == opened) - (found[place].text == closed)
        if depth == 0:
            return place
    return len(found)


def definition(found: Sequence[Token], name: str) -> Function | None:
    """Return the first definition of a function, not its declarations or calls."""
    for place, token in enumerate(found[:-1]):
        if token.text != name or found[place + 1].text != "(":
            continue
        close = closing(found, place + 1)
        if close + 1 < len(found) and found[close + 1].text == "{":
            end = closing(found, close + 1)
            return Function(name, tuple(found[place + 2 : close]), tuple(found[close + 2 : end]))
    return None


def definitions(text: str, names: Iterable[str]) -> list[Function]:
    """Return the definitions of functions that do anything, in their order in the text."""
    found = tokens(text)
    known = (definition(found, name) for name in names)
    return sorted((one for one in known if one and one.body), key=lambda one: one.body[0].start)


_C_WORDS = """
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor
    bool break case catch char char8_t char16_t char32_t class co_await co_return co_yield compl
    concept const const_cast consteval constexpr constinit continue decltype default delete do
    double dynamic_cast else enum explicit export extern false final float for friend goto if
    import inline int long module mutable namespace new noexcept not not_eq nullptr operator or
    or_eq override private protected public reflexpr register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch synchronized template
    this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned
    using virtual void volatile wchar_t while xor xor_eq
"""
_CUDA_WORDS = """
    threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 host device
    half half2 nv_bfloat16 nv_bfloat162 clock clock64 printf assert trap
    __global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__
    __forceinline__ __noinline__ __launch_bounds__ __syncthreads
    __syncthreads_and __syncwarp
    atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS atomicAnd
    atomicOr atomicXor
    char1 char2 char3 char4 uchar1 uchar2 uchar3 uchar4 short1 short2 short3 short4 ushort1
    ushort2 ushort3 ushort4 int1 int2 int3 int4 uint1 uint2 uint4 long1 long2 long3 long4 ulong1
    ulong2 ulong3 ulong4 longlong1 longlong2 longlong3 longlong4 float1 float2 float3 float4
    double1 double2 double3 double4
"""
_OWN_WORDS = """
    x y z unroll run free vector data device expected differs print_sums size read repetitions
    wants_help
    program main
"""
OWN_WORDS = frozenset(_OWN_WORDS.split())
"""What the text uses where size macros are defined, members mostly: no macro can be called so."""

_MACROS = """
    NULL EOF NAN NZERO INFINITY HUGE HUGE_VAL HUGE_VALF HUGE_VALL MAXFLOAT DOMAIN SING OVERFLOW
    UNDERFLOW PLOSS TLOSS X_TLOSS math_errhandling MATH_ERRNO MATH_ERREXCEPT
    fpclassify isfinite isinf isnan isnormal signbit isgreater isgreaterequal isless islessequal
    islessgreater isunordered issubnormal
    errno stdin stdout stderr offsetof va_arg va_copy va_end va_start setjmp sigsetjmp alloca
    assert_perror isascii toascii strdupa strndupa
    major minor makedev linux unix i386 BUFSIZ CHAR_BIT WORD_BIT LONG_BIT NGREG CLOCKS_PER_SEC
    EXIT_FAILURE EXIT_SUCCESS BIG_ENDIAN LITTLE_ENDIAN PDP_ENDIAN BYTE_ORDER NFDBITS FD_SETSIZE
    FD_CLR FD_ISSET FD_SET FD_ZERO MAX_CANON MAX_INPUT PIPE_BUF PTHREAD_DESTRUCTOR_ITERATIONS
    TIMER_ABSTIME TIME_UTC P_tmpdir L_ctermid L_cuserid L_tmpnam IF_DEVICE_OR_CUDACC WEOF
    WCONTINUED WEXITED WNOHANG WNOWAIT WSTOPPED WUNTRACED WEXITSTATUS WIFCONTINUED WIFEXITED
    WIFSIGNALED WIFSTOPPED WSTOPSIG WTERMSIG
"""
_MACRO_FORMS = r"""
    (FLT|L?DBL)_\w+ DECIMAL_DIG FP_\w+ S?NANF?\d*X? SNANL HUGE_VAL_F\d+X?
    M_(E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)(l|f\d*x?)?
    (U?INT\w*|BOOL|S?CHAR|UCHAR|U?SHRT|U?(L|LONG_)?LONG|S?SIZE|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)_(MAX|MIN)
    (U?INT\w*|BOOL|S?CHAR|UCHAR|U?SHRT|U?(L|LONG_)?LONG|SIZE|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)_WIDTH
    U?INT(8|16|32|64|MAX)_C [A-Z]+_PRIO_(DELTA_)?MAX (BC|MB)_\w+_MAX
    (NAME|PATH|LINE|IOV|RE_DUP)_MAX
    (HOST|LOGIN|TTY|FILE|CHARCLASS)_?NAME_MAX (FOPEN|TMP|RAND|RTSIG|NGROUPS|DELAYTIMER)_MAX
    (COLL_WEIGHTS|EXPR_NEST|SEM_VALUE|XATTR_\w+|PTHREAD_\w+)_MAX PTHREAD_STACK_MIN
    _to(low|upp)er CU_[A-Z_]+
    (ADJ|MOD|STA|LC|NL|NV|MADV|POSIX_MADV|MAP|MCL|MFD|MREMAP|MS|PKEY|PROT|REG|RENAME|SEEK)_[A-Z0-9_a-z]+
    SHADOW_STACK_[A-Z_]+
    CLOCK_[A-Z_]+ MLOCK_ONFAULT (be|le)(16|32|64)toh hto(be|le)(16|32|64) (is|to)[a-z]+_l
    E(2BIG|ACCES|ADDR\w+|ADV|AFNOSUPPORT|AGAIN|ALREADY|BAD\w+|BFONT|BUSY|CANCELED|CHILD|CHRNG|COMM)
    E(CONN\w+|DEADL\w+|DESTADDRREQ|DOM|DOTDOT|DQUOT|EXIST|FAULT|FBIG|HOST\w+|HWPOISON|IDRM|ILSEQ)
    E(INPROGRESS|INTR|INVAL|IO|IS\w+|KEY\w+|L2\w+|L3\w+|LIB\w+|LNRNG|LOOP|MEDIUMTYPE|MFILE|MLINK)
    E(MSGSIZE|MULTIHOP|NAMETOOLONG|NAVAIL|NET\w+|NFILE|NO\w+|NXIO|OPNOTSUPP|OVERFLOW|OWNERDEAD|PERM)
    E(PFNOSUPPORT|PIPE|PROTO\w*|RANGE|REM\w+|RESTART|RFKILL|ROFS|SHUTDOWN|SOCKTNOSUPPORT|SPIPE|SRCH)
    E(SRMNT|STALE|STRPIPE|TIME|TIMEDOUT|TOOMANYREFS|TXTBSY|UCLEAN|UNATCH|USERS|WOULDBLOCK|XDEV|XFULL)
"""
"""Macros of the headers of CUDA and of C, on Linux; a test asks the compilers for theirs."""

MATH_FUNCTIONS = tuple(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs
    fdim floor fma fmax fmin fmod hypot ldexp lgamma log log10 log1p log2 nearbyint nextafter pow
    remainder rint round sin sinh sqrt tan tanh tgamma trunc
    """.split()  # noqa: SIM905 - words are easier to read than quotes
)
"""Functions of ``math.h`` that may be called, each also with an ``f`` behind it for floats."""

_CALLED = "eatss abs labs llabs min max main std size_t malloc free memcpy"

SHARED = "sh"
"""What a kernel calls the structure of its boxes in shared memory."""

_RESERVED = frozenset(
    " ".join((_C_WORDS, _CUDA_WORDS, _MACROS, *MATH_FUNCTIONS, _CALLED, SHARED)).split()
) | frozenset(name + "f" for name in MATH_FUNCTIONS)
_FORMS = "|".join(_MACRO_FORMS.split())
RESERVED_FORM = re.compile(
    rf"{_FORMS}|(?i:eatss_).*|cuda[A-Z]\w*|cu[A-Z]\w*|CUDA_?\w*|_[A-Z_]\w*|.*__.*"
)


@cache
def is_reserved(name: str) -> bool:
    """Return whether the generated text or its compilers give the name another meaning."""
    return name in _RESERVED or RESERVED_FORM.fullmatch(name) is not None


def size_text(name: str) -> str:
    """Return what the generated text calls a size: as the source does, where that can stand."""
    return f"eatss_named_{name}" if is_reserved(name) else name


def converted(c_type: str, name: str) -> Name:
    """Return a size converted to a type of C, for the generated text."""
    return Name(f"({c_type}){size_text(name)}")


def generated_text(expression: IntExpr) -> str:
    """Return an expression as it is printed in the generated text."""
    others = {
        name: Name(size_text(name))
        for name in names_in(expression)
        if name.isidentifier() and is_reserved(name)
    }
    return c_text(substitute(expression, others) if others else expression)


def size_macro(name: str) -> str:
    """Return the macro that sets a size when the generated text is compiled."""
    return f"EATSS_SIZE_{name}"
