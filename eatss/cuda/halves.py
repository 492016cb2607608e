"""Halves in generated text: a type of its own, because NVRTC has no header with one.

``eatss_half`` holds 16 bits and converts to and from all other numbers. Nothing is computed in it,
and no conversion is left to the compiler.
"""

from __future__ import annotations

from eatss.scops import ElementType

HALF = "eatss_half"
"""What ``_Float16`` is called in CUDA."""

_SPELLINGS = {ElementType.HALF.value: HALF, ElementType.BOOL.value: "bool"}


def type_text(element_type: ElementType | str) -> str:
    """Return what an element type, or its C spelling, is called in CUDA."""
    spelling = element_type.value if isinstance(element_type, ElementType) else element_type
    return _SPELLINGS.get(spelling, spelling)


DEFINITION = """\

// A number with 11 significant bits. It is stored and converted; floats are what is computed with.
struct eatss_half {
    unsigned short bits;

    eatss_half() = default;
    __host__ __device__ __forceinline__ explicit eatss_half(float value)
    {
#ifdef __CUDA_ARCH__
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
        bits = on_host(value);
#endif
    }
    __host__ __device__ __forceinline__ explicit eatss_half(double value)
    {
#ifdef __CUDA_ARCH__
        asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
#else
        bits = on_host(value);
#endif
    }
    template <typename Number>
    __host__ __device__ __forceinline__ explicit eatss_half(Number value)
        : eatss_half((float)value)
    {
    }
    template <typename Number>
    __host__ __device__ __forceinline__ explicit operator Number() const
    {
        float value;
#ifdef __CUDA_ARCH__
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
#else
        value = on_host(bits);
#endif
        return (Number)value;
    }
    __host__ __device__ __forceinline__ bool operator==(eatss_half other) const
    {
        return (float)*this == (float)other;
    }
#ifndef __CUDA_ARCH__
    static inline unsigned short on_host(double value)
    {
        const unsigned short sign = signbit(value) ? 0x8000 : 0;
        const double size = fabs(value);
        if (size != size)
            return sign | 0x7e00;
        if (size >= 65520)
            return sign | 0x7c00;
        const int power = size < 0x1p-14 ? -14 : ilogb(size);
        return sign | (unsigned short)((power + 14) * 1024 + (int)rint(ldexp(size, 10 - power)));
    }
    static inline float on_host(unsigned short bits)
    {
        const int power = bits >> 10 & 31, rest = bits & 1023;
        const float size = power == 31  ? (rest ? NAN : INFINITY)
                           : power == 0 ? ldexpf((float)rest, -24)
                                        : ldexpf((float)(1024 + rest), power - 25);
        return bits & 0x8000 ? -size : size;
    }
#endif
};
"""

CPU_DEFINITION = """\

// A number with 11 significant bits. It is stored and converted; floats are what is computed with.
struct eatss_half {
    unsigned short bits;

    eatss_half() = default;
    template <typename Number>
    explicit eatss_half(Number value)
    {
        const _Float16 half = (_Float16)value;
        memcpy(&bits, &half, sizeof bits);
    }
    template <typename Number, int16_t group>
    explicit eatss_half(const eatss::Tracked<Number, group> &value) : eatss_half(value.read())
    {
    }
    template <typename Number>
    explicit operator Number() const
    {
        _Float16 half;
        memcpy(&half, &bits, sizeof bits);
        return (Number)half;
    }
    bool operator==(eatss_half other) const { return (float)*this == (float)other; }
};
"""

WIDE_ROWS = """\
__device__ __forceinline__ void eatss_store_wide(eatss_half *to, const eatss_half *from)
{
    unsigned int words[4];
    for (int at = 0; at < 4; at++)
        words[at] = from[2 * at].bits | (unsigned int)from[2 * at + 1].bits << 16;
    *reinterpret_cast<uint4 *>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}
"""

WIDE_LINES = """\
__device__ __forceinline__ void eatss_load_wide(eatss_half *to, const eatss_half *from)
{
    const uint4 all = *reinterpret_cast<const uint4 *>(from);
    const unsigned int words[4] = {all.x, all.y, all.z, all.w};
    for (int at = 0; at < 8; at++)
        to[at].bits = (unsigned short)(words[at / 2] >> (at % 2 * 16));
}
"""

FINITE = """\
__host__ __device__ __forceinline__ bool eatss_is_finite(eatss_half value)
{
    return (value.bits & 0x7c00) != 0x7c00;
}
"""
