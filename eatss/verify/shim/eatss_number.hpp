// Numbers that know how far rounding may take them.
//
// The original C is compiled once more as C++ with these in place of float and double. A number
// carries its value v and three figures, from which |computed - exact| <= leaf + adds * u * size,
// whatever order the additions that lead to it are done in:
//   size  the sum of the absolute values of its terms (its own, if it is no sum)
//   leaf  the sum of the error bounds of its terms
//   adds  how many additions join the terms; a term takes part in at most so many roundings
// u is half the distance of 1 to the next number. A product, a quotient or a function starts
// a new term: its operands' bounds go into its leaf, products of two bounds included.
//
// The generated program may round factors before it multiplies them, and the sums of such products
// more than once for each. eatss_rounds_* say so of a type: a product that is added to something may
// be off by the first figure times itself, and takes part in as many roundings as the second; a
// factor may be off by the third; a quotient has as many roundings as the fourth; numbers below the
// fifth are 0. Of the original they are 0, 1, 0, 1, 0.
#pragma once

#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS  // <math.h> of C: the C++ one takes longer than the text
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

extern "C" {
double eatss_rounds_float[5] = {0, 1, 0, 1, 0}, eatss_rounds_double[5] = {0, 1, 0, 1, 0};
double eatss_rounds_half[5] = {0, 1, 0, 1, 0};
}

namespace eatss {

typedef double Real;

template <class T> struct Is { static constexpr bool number = false, floating = false; };
template <> struct Is<float> {
    static constexpr bool number = true, floating = true;
    static constexpr Real unit = 5.9604644775390625e-08, tiny = 1.401298464324817e-45;
    static const Real *rounds() { return eatss_rounds_float; }
};
template <> struct Is<double> {
    static constexpr bool number = true, floating = true;
    static constexpr Real unit = 1.1102230246251565e-16, tiny = 4.9406564584124654e-324;
    static const Real *rounds() { return eatss_rounds_double; }
};
#ifdef __FLT16_MANT_DIG__
template <> struct Is<_Float16> {
    static constexpr bool number = true, floating = true;
    static constexpr Real unit = 4.8828125e-04, tiny = 5.9604644775390625e-08;
    static const Real *rounds() { return eatss_rounds_half; }
};
#endif
#define EATSS_INTEGER(type) \
    template <> struct Is<type> { static constexpr bool number = true, floating = false; };
EATSS_INTEGER(bool) EATSS_INTEGER(char) EATSS_INTEGER(signed char) EATSS_INTEGER(unsigned char)
EATSS_INTEGER(short) EATSS_INTEGER(unsigned short) EATSS_INTEGER(int) EATSS_INTEGER(unsigned)
EATSS_INTEGER(long) EATSS_INTEGER(unsigned long) EATSS_INTEGER(long long)
EATSS_INTEGER(unsigned long long)
#undef EATSS_INTEGER

template <bool condition, class T> struct If {};
template <class T> struct If<true, T> { typedef T type; };
template <class T> constexpr int rank = 0;
template <> constexpr int rank<float> = 2;
template <> constexpr int rank<double> = 3;
template <int rank> struct Ranked { typedef float type; };
template <> struct Ranked<3> { typedef double type; };
#ifdef __FLT16_MANT_DIG__
template <> constexpr int rank<_Float16> = 1;
template <> struct Ranked<1> { typedef _Float16 type; };
#endif
template <class A, class B>
struct Common {
    typedef typename Ranked<(rank<A> > rank<B> ? rank<A> : rank<B>)>::type type;
};

template <class T>
struct Number {
    T v;
    Real size, leaf, adds;
    Real product;  // 1 for a product, else 0

    Number() = default;
    Number(T v_, Real size_, Real leaf_, Real adds_, Real product_ = 0)
        : v(v_), size(size_), leaf(leaf_), adds(adds_), product(product_) {}
    template <class U, class = typename If<Is<U>::number, int>::type>
    Number(U u) : v((T)u), size(::fabs((Real)v)), leaf(0), adds(0), product(0) {
        leaf = ::fabs((Real)((long double)u - (long double)v));
    }
    // A conversion is one rounding more of every partial sum, if it is one at all; adds count in
    // units of the new type.
    template <class U>
    Number(const Number<U> &o)
        : v((T)o.v), size(o.size),
          leaf(o.leaf + (sizeof(U) > sizeof(T) ? Is<T>::tiny : 0) + Is<T>::rounds()[4]
               + Is<U>::rounds()[4]),
          adds(o.adds * (Is<U>::unit / Is<T>::unit) + (sizeof(U) > sizeof(T) ? 1 : 0)), product(0) {}
    static Number term(T value, Real error, Real product = 0) {
        return Number(value, ::fabs((Real)value) + error, error, 0, product);
    }
    Real bound() const { return leaf + adds * Is<T>::unit * size; }
    Real top() const { return ::fabs((Real)v) + bound(); }

    explicit operator bool() const { return v != 0; }
    template <class U, class = typename If<Is<U>::number, int>::type>
    explicit operator U() const { return (U)v; }

    template <class U> Number &operator+=(U b) { return *this = *this + b; }
    template <class U> Number &operator-=(U b) { return *this = *this - b; }
    template <class U> Number &operator*=(U b) { return *this = *this * b; }
    template <class U> Number &operator/=(U b) { return *this = *this / b; }
    Number &operator++() { return *this += 1; }
    Number &operator--() { return *this -= 1; }
    Number operator++(int) { Number old = *this; *this += 1; return old; }
    Number operator--(int) { Number old = *this; *this -= 1; return old; }
    Number operator-() const {
        return Number(-v, size, leaf + Is<T>::rounds()[4], adds, product);
    }
    Number operator+() const { return *this; }
};

template <class T> Number<T> sum(const Number<T> &a, const Number<T> &b, T value) {
    const Real *rounds = Is<T>::rounds(), products = a.product * a.size + b.product * b.size;
    const Real off = rounds[0] * products + 3 * rounds[4];  // both terms, and the sum
    const Real each = a.product + b.product > 0 ? rounds[1] : 1;
    return Number<T>(value, a.size + b.size + off, a.leaf + b.leaf + off, a.adds + b.adds + each);
}
template <class T> Number<T> product(const Number<T> &a, const Number<T> &b) {
    Real x = ::fabs((Real)a.v), y = ::fabs((Real)b.v), ex = a.bound(), ey = b.bound();
    const Real *rounds = Is<T>::rounds(), off = rounds[2] + rounds[4];
    Real error = x * ey + y * ex + ex * ey + off * (x + y + ex + ey + rounds[4]) + rounds[4];
    return Number<T>::term(a.v * b.v, error + Is<T>::unit * (x * y + error) + Is<T>::tiny, 1);
}
template <class T> Number<T> quotient(const Number<T> &a, const Number<T> &b) {
    const Real *rounds = Is<T>::rounds(), ea = a.bound() + rounds[4], eb = b.bound() + rounds[4];
    Real y = ::fabs((Real)b.v), least = y - eb, q = ::fabs((Real)(a.v / b.v));
    Real error = (least > 0 ? (ea + q * eb) / least : HUGE_VAL) + rounds[4];
    return Number<T>::term(a.v / b.v, error + rounds[3] * Is<T>::unit * (q + error) + Is<T>::tiny);
}

#define EATSS_BOTH(op, result, make)                                                            \
    template <class A, class B>                                                                 \
    inline result(A, B) operator op(const Number<A> &a, const Number<B> &b) {                   \
        typedef typename Common<A, B>::type C;                                                  \
        Number<C> x(a), y(b);                                                                   \
        return make;                                                                            \
    }                                                                                           \
    template <class A, class B, class = typename If<Is<B>::number, int>::type>                  \
    inline result(A, B) operator op(const Number<A> &a, B b) {                                  \
        typedef typename Common<A, B>::type C;                                                  \
        Number<C> x(a), y(b);                                                                   \
        return make;                                                                            \
    }                                                                                           \
    template <class A, class B, class = typename If<Is<A>::number, int>::type>                  \
    inline result(A, B) operator op(A a, const Number<B> &b) {                                  \
        typedef typename Common<A, B>::type C;                                                  \
        Number<C> x(a), y(b);                                                                   \
        return make;                                                                            \
    }
#define EATSS_NUMBER(A, B) Number<typename Common<A, B>::type>
#define EATSS_BOOL(A, B) bool
EATSS_BOTH(+, EATSS_NUMBER, (sum<C>(x, y, x.v + y.v)))
EATSS_BOTH(-, EATSS_NUMBER, (sum<C>(x, y, x.v - y.v)))
EATSS_BOTH(*, EATSS_NUMBER, (product<C>(x, y)))
EATSS_BOTH(/, EATSS_NUMBER, (quotient<C>(x, y)))
EATSS_BOTH(<, EATSS_BOOL, x.v < y.v)
EATSS_BOTH(>, EATSS_BOOL, x.v > y.v)
EATSS_BOTH(<=, EATSS_BOOL, x.v <= y.v)
EATSS_BOTH(>=, EATSS_BOOL, x.v >= y.v)
EATSS_BOTH(==, EATSS_BOOL, x.v == y.v)
EATSS_BOTH(!=, EATSS_BOOL, x.v != y.v)
#undef EATSS_BOTH
#undef EATSS_NUMBER
#undef EATSS_BOOL
template <class T> inline bool operator!(const Number<T> &a) { return a.v == 0; }

// A function of one argument: `slope` bounds |f'| over the argument's interval. Compilers' math
// libraries and a card's round functions within a few units, not one.
template <class T> Number<T> applied(const Number<T> &a, T value, Real slope) {
    const Real flushed = Is<T>::rounds()[4];
    Real error = slope * (a.bound() + flushed) + flushed;
    Real units = 4 * Is<T>::unit;
    return Number<T>::term(value, error + units * (::fabs((Real)value) + error) + Is<T>::tiny);
}

}  // namespace eatss

typedef eatss::Number<float> eatss_float;
typedef eatss::Number<double> eatss_double;
#ifdef __FLT16_MANT_DIG__
typedef eatss::Number<_Float16> eatss_half;
#define EATSS_OF_HALF(name) \
    inline eatss_double name(eatss_half a) { return name(eatss_double(a)); }
#else
#define EATSS_OF_HALF(name)
#endif

// The steepest slope is taken at the end of the interval that the comment names. Only double and
// float versions of C exist; f is the suffix.
#define EATSS_FUNCTION(name, slope)                                                     \
    inline eatss_double name(eatss_double a) {                                          \
        double x = a.v, e = a.bound();                                                  \
        (void)x, (void)e;                                                               \
        return eatss::applied<double>(a, ::name(a.v), slope);                           \
    }                                                                                   \
    inline eatss_float name##f(eatss_float a) {                                         \
        double x = a.v, e = a.bound() + eatss_rounds_float[4];                          \
        (void)x, (void)e;                                                               \
        return eatss::applied<float>(a, ::name##f(a.v), slope);                         \
    }                                                                                   \
    inline eatss_double name(eatss_float a) { return name(eatss_double(a)); }           \
    EATSS_OF_HALF(name)
#define EATSS_LEAST(x) ((x) > 0 ? (x) : 0)
EATSS_FUNCTION(sqrt, x - e > 0 ? 0.5 / ::sqrt(x - e) : (e > 0 ? ::sqrt(x + e) / e : 0.0))
EATSS_FUNCTION(fabs, 1.0)
EATSS_FUNCTION(exp, ::exp(x + e))
EATSS_FUNCTION(log, 1 / EATSS_LEAST(x - e))
EATSS_FUNCTION(sin, 1.0)
EATSS_FUNCTION(cos, 1.0)
EATSS_FUNCTION(tanh, 1.0)
EATSS_FUNCTION(atan, 1.0)
EATSS_FUNCTION(erf, 1.1283791670955126)
#undef EATSS_FUNCTION
#undef EATSS_LEAST

// The larger of two numbers moves by no more than the one that moves more.
#define EATSS_CHOICE(name, op)                                                          \
    template <class T>                                                                  \
    inline eatss::Number<T> eatss_##name(eatss::Number<T> a, eatss::Number<T> b) {      \
        eatss::Real error = a.bound() > b.bound() ? a.bound() : b.bound();              \
        error += eatss::Is<T>::rounds()[4];                                             \
        return eatss::Number<T>::term(a.v op b.v || b.v != b.v ? a.v : b.v, error);     \
    }                                                                                   \
    inline eatss_double name(eatss_double a, eatss_double b) {                          \
        return eatss_##name<double>(a, b);                                              \
    }                                                                                   \
    inline eatss_float name##f(eatss_float a, eatss_float b) { return eatss_##name<float>(a, b); }
EATSS_CHOICE(fmin, <)
EATSS_CHOICE(fmax, >)
#undef EATSS_CHOICE

// Arguments of the original as the caller has them: pointers to anything.
struct eatss_any {
    void *p;
    template <class T> operator T *() const { return (T *)p; }
};
template <class T> inline bool eatss_is_pointer(T *&) { return true; }
template <class T> inline bool eatss_is_pointer(T &) { return false; }

#define restrict __restrict__
#define _Bool bool
#define float eatss_float
#define double eatss_double
#ifdef __FLT16_MANT_DIG__
#define _Float16 eatss_half
#endif
