"""C text in the making: every piece knows which Python it stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from eatss.base.diagnostics import SourceSpan

_MATH = frozenset(
    """
    acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi canonicalize cbrt ceil
    compoundn copysign cos cosh cospi daddl ddivl dfmal dmull double_t drem dsqrtl dsubl erf
    erfc exp exp10 exp10m1 exp2 exp2m1 expm1 fabs fadd fdim fdiv ffma finite float_t floor fma
    fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag fmin fminimum fminimum_mag
    fminimum_mag_num fminimum_num fminmag fmod fmul fpclassify frexp fromfp fromfpx fsqrt fsub
    gamma getpayload hypot ilogb iscanonical iseqsig isfinite isgreater isgreaterequal isinf
    isless islessequal islessgreater isnan isnormal issignaling issubnormal isunordered iszero
    j0 j1 jn ldexp lgamma llogb llrint llround log log10 log10p1 log1p log2 log2p1 logb logp1
    lrint lround modf nan nearbyint nextafter nextdown nexttoward nextup pow pown powr remainder
    remquo rint rootn round roundeven rsqrt scalb scalbln scalbn setpayload setpayloadsig
    signbit signgam significand sin sincos sinh sinpi sqrt tan tanh tanpi tgamma totalorder
    totalordermag trunc ufromfp ufromfpx y0 y1 yn
    """.split()  # noqa: SIM905 - words are easier to read than quotes
)
"""Names of ``math.h``, each also with a suffix for its type: ``j0f``."""

_STANDARD = frozenset(
    """
    FD_CLR FD_ISSET FD_SET FD_ZERO WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED
    WSTOPSIG WTERMSIG a64l abort abs aligned_alloc alloca arc4random arc4random_buf
    arc4random_uniform at_quick_exit atexit atof atoi atol atoll be16toh be32toh be64toh
    blkcnt64_t blkcnt_t blksize_t bsearch caddr_t calloc canonicalize_file_name clearenv clock_t
    clockid_t comparison_fn_t daddr_t dev_t div div_t drand48 drand48_r ecvt ecvt_r erand48
    erand48_r exit fcvt fcvt_r fd_mask fd_set free fsblkcnt64_t fsblkcnt_t fsfilcnt64_t
    fsfilcnt_t fsid_t gcvt getenv getloadavg getpt getsubopt gid_t grantpt htobe16 htobe32
    htobe64 htole16 htole32 htole64 id_t initstate initstate_r ino64_t ino_t int16_t int32_t
    int64_t int8_t jrand48 jrand48_r key_t l64a labs lcong48 lcong48_r ldiv ldiv_t le16toh
    le32toh le64toh llabs lldiv lldiv_t locale_t loff_t lrand48 lrand48_r malloc mblen mbstowcs
    mbtowc mkdtemp mkostemp mkostemp64 mkostemps mkostemps64 mkstemp mkstemp64 mkstemps
    mkstemps64 mktemp mode_t mrand48 mrand48_r nlink_t nrand48 nrand48_r off64_t off_t on_exit
    pid_t posix_memalign posix_openpt pselect pthread_attr_t pthread_barrier_t
    pthread_barrierattr_t pthread_cond_t pthread_condattr_t pthread_key_t pthread_mutex_t
    pthread_mutexattr_t pthread_once_t pthread_rwlock_t pthread_rwlockattr_t pthread_spinlock_t
    pthread_t ptsname ptsname_r putenv qecvt qecvt_r qfcvt qfcvt_r qgcvt qsort qsort_r quad_t
    quick_exit rand rand_r random random_r realloc reallocarray realpath register_t rpmatch
    secure_getenv seed48 seed48_r select setenv setstate setstate_r sigset_t size_t srand
    srand48 srand48_r srandom srandom_r ssize_t suseconds_t system time_t timer_t u_char u_int
    u_int16_t u_int32_t u_int64_t u_int8_t u_long u_quad_t u_short uid_t uint ulong unlockpt
    unsetenv useconds_t ushort valloc wchar_t wcstombs wctomb
    """.split()  # noqa: SIM905 - words are easier to read than quotes
)
"""Names of ``stdlib.h`` and what it includes."""

_MACROS = frozenset(
    """
    BIG_ENDIAN BYTE_ORDER EXIT_FAILURE EXIT_SUCCESS FD_SETSIZE FP_ILOGB0 FP_ILOGBNAN FP_INFINITE
    FP_INT_DOWNWARD FP_INT_TONEAREST FP_INT_TONEARESTFROMZERO FP_INT_TOWARDZERO FP_INT_UPWARD
    FP_LLOGB0 FP_LLOGBNAN FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO HUGE_VAL HUGE_VALF HUGE_VALL
    HUGE_VAL_F128 HUGE_VAL_F32 HUGE_VAL_F32X HUGE_VAL_F64 HUGE_VAL_F64X INFINITY LITTLE_ENDIAN
    MATH_ERREXCEPT MATH_ERRNO MAXFLOAT MB_CUR_MAX NAN NFDBITS NULL PDP_ENDIAN RAND_MAX SNAN
    SNANF SNANF128 SNANF32 SNANF32X SNANF64 SNANF64X SNANL WCONTINUED WEXITED WNOHANG WNOWAIT
    WSTOPPED WUNTRACED linux math_errhandling unix
    """.split()  # noqa: SIM905 - words are easier to read than quotes
)
"""Macros without arguments, of the headers and of the compiler; besides ``M_PI`` and its like."""

_TYPE = "f|l|f16|f32|f64|f128|f32x|f64x"
_FAMILIES = re.compile(
    r"f(32|64)x?(add|div|fma|mul|sqrt|sub)f(32|64|128)x?"
    rf"|strto(d|ld|l|ll|q|ul|ull|uq|{_TYPE})(_l)?|strfrom(d|{_TYPE})"
)
_CONSTANT = re.compile(r"M_[A-Z0-9_]+(l|f\d*x?)?")


def is_macro(name: str) -> bool:
    """Tell whether a name is replaced wherever it stands in C."""
    return name in _MACROS or _CONSTANT.fullmatch(name) is not None


def is_declared(name: str) -> bool:
    """Tell whether the headers declare a name, as that of a function, a type or a variable."""
    if name in _STANDARD or name in _MATH or _FAMILIES.fullmatch(name):
        return True
    plain = name.removesuffix("_r")
    return any(plain.removesuffix(kind) in _MATH for kind in _TYPE.split("|"))


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters ``start`` to ``end`` of a line stand for a stretch of Python."""

    start: int
    end: int
    span: SourceSpan


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a C line and the marks in it, offsets from its start."""

    text: str
    marks: tuple[Mark, ...] = ()

    def at(self, span: SourceSpan) -> Piece:
        """Return the piece with all of it marked besides."""
        return Piece(self.text, (*self.marks, Mark(0, len(self.text), span)))


@dataclass(frozen=True, slots=True)
class CLine:
    """A line of C; ``span`` is the Python it stands for where no mark says it better."""

    piece: Piece
    span: SourceSpan


def joined(*parts: str | Piece) -> Piece:
    """Return pieces and texts one after another."""
    texts: list[str] = []
    marks: list[Mark] = []
    length = 0
    for part in parts:
        if isinstance(part, Piece):
            marks += (
                replace(mark, start=mark.start + length, end=mark.end + length)
                for mark in part.marks
            )
            part = part.text  # noqa: PLW2901
        texts.append(part)
        length += len(part)
    return Piece("".join(texts), tuple(marks))


def listed(pieces: list[Piece], separator: str = ", ") -> Piece:
    """Return pieces with a text between each two."""
    parts: list[str | Piece] = []
    for piece in pieces:
        parts += [separator, piece] if parts else [piece]
    return joined(*parts)


def python_span(lines: tuple[CLine, ...], span: SourceSpan) -> SourceSpan:
    """Return the Python that a span of C stands for: the least mark around it, or its lines."""
    first, last = (lines[min(line, len(lines)) - 1] for line in (span.line, span.end_line))
    if first is last:
        start, end = span.column - 1, span.end_column - 1
        around = [m for m in first.piece.marks if m.start <= start and end <= m.end]
        if around:
            return min(around, key=lambda mark: mark.end - mark.start).span
        return first.span
    return replace(first.span, end_line=last.span.end_line, end_column=last.span.end_column)
