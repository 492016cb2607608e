"""C identifiers for the generated text that mean nothing else there.

Functions of ``math.h`` that the text never calls (``y1``, ``j0``, ``gamma``) may be names of
arrays and variables: the text declares such a name in a scope of its own, where it hides the
function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

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
_MACROS = """
    NULL EOF NAN INFINITY HUGE HUGE_VAL HUGE_VALF HUGE_VALL MAXFLOAT DOMAIN SING OVERFLOW UNDERFLOW
    PLOSS TLOSS X_TLOSS math_errhandling MATH_ERRNO MATH_ERREXCEPT
    FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL FP_ILOGB0 FP_ILOGBNAN FP_FAST_FMA
    FP_FAST_FMAF FP_FAST_FMAL
    M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2
    M_SQRT1_2
    fpclassify isfinite isinf isnan isnormal signbit isgreater isgreaterequal isless islessequal
    islessgreater isunordered
    errno stdin stdout stderr offsetof va_arg va_copy va_end va_start setjmp
    major minor makedev linux unix i386 BUFSIZ CHAR_BIT CHAR_MAX CHAR_MIN INT_MAX INT_MIN LONG_MAX
    LONG_MIN LLONG_MAX LLONG_MIN SHRT_MAX SHRT_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX UINT_MAX ULONG_MAX
    ULLONG_MAX USHRT_MAX RAND_MAX EXIT_FAILURE EXIT_SUCCESS SEEK_CUR SEEK_END SEEK_SET
    FLT_EPSILON DBL_EPSILON FLT_MAX DBL_MAX FLT_MIN DBL_MIN
    INT8_MAX INT16_MAX INT32_MAX INT64_MAX UINT8_MAX UINT16_MAX UINT32_MAX UINT64_MAX SIZE_MAX
"""
_CALLED_STEMS = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs
    fdim floor fma fmax fmin fmod hypot ldexp lgamma log log10 log1p log2 nearbyint nextafter pow
    remainder rint round sin sinh sqrt tan tanh tgamma trunc
"""
_CALLED = "abs labs llabs min max main std size_t malloc free memcpy"

_RESERVED = frozenset(
    " ".join((_C_WORDS, _CUDA_WORDS, _MACROS, _CALLED_STEMS, _CALLED)).split()
) | frozenset(stem + "f" for stem in _CALLED_STEMS.split())
_RESERVED_FORM = re.compile(r"(?i:eatss_).*|cuda[A-Z]\w*|cu[A-Z]\w*|CUDA_?\w*|_[A-Z_]\w*|.*__.*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def is_reserved(name: str) -> bool:
    """Return whether the generated text or its compilers give the name another meaning."""
    return name in _RESERVED or _RESERVED_FORM.fullmatch(name) is not None


def identifier(text: str) -> str:
    """Return ``text`` with what no C identifier may hold replaced by underscores."""
    cleaned = re.sub(r"_{2,}", "_", re.sub(r"\W", "_", text, flags=re.ASCII))
    if cleaned[:1].isdigit():
        cleaned = f"v{cleaned}"
    if not _IDENTIFIER.fullmatch(cleaned):
        cleaned = "v"
    return cleaned


class NameTable:
    """The names taken in a scope of the text; it gives out others.

    The same requests in the same order give the same names.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._outer: NameTable | None = None

    def fresh(self, wish: str) -> str:
        """Return ``wish`` if it is free, else ``wish_1``, ``wish_2``, …, and take it."""
        stem = identifier(wish)
        numbered = f"{stem.rstrip('_')}_1"  # of eatss, which is no such form, it is one
        if any(map(_RESERVED_FORM.fullmatch, (stem, numbered))):
            stem = f"v_{stem.strip('_')}"  # no number makes a reserved prefix free
        name, number = stem, 0
        while not self.is_free(name):
            number += 1
            name = f"{stem.rstrip('_') or 'v'}_{number}"
        self._taken.add(name)
        return name

    def reserve(self, *names: str) -> None:
        """Take names as they are."""
        self._taken.update(names)

    def is_free(self, name: str) -> bool:
        """Return whether a name has no meaning yet, here and in the scopes around."""
        if is_reserved(name) or name in self._taken:
            return False
        return self._outer is None or self._outer.is_free(name)

    def inner(self) -> NameTable:
        """Return a table of a scope inside this one; names it gives out are not taken here."""
        table = NameTable()
        table._outer = self
        return table
