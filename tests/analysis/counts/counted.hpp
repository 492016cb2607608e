// A number that counts what is done with it: operations by kind, elements first read, elements written.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

static const size_t ARRAYS = 20, ELEMENTS = 4096;

struct Counted;
static long operations[5];  // add, multiply, divide, square root, compare
static unsigned char seen[ARRAYS * ELEMENTS];  // 1: read before any write, 2: written
static Counted *arena();

struct Counted {
    double value;
    Counted() = default;
    Counted(double given) : value(given) {}
    Counted(const Counted &other) : value(other.read()) {}
    double read() const { mark(1); return value; }
    void mark(unsigned char how) const {
        const ptrdiff_t at = this - arena();
        if (at < 0 || at >= (ptrdiff_t)(ARRAYS * ELEMENTS)) return;
        if (how == 2 || !(seen[at] & 2)) seen[at] |= how;
    }
    Counted &operator=(const Counted &other) {
        const double given = other.read();
        mark(2);
        value = given;
        return *this;
    }
};

static Counted *arena() {
    static double memory[ARRAYS * ELEMENTS];
    return reinterpret_cast<Counted *>(memory);
}

#define COUNTED_OPERATOR(sign, kind) \
    static Counted operator sign(const Counted &a, const Counted &b) { \
        ++operations[kind]; \
        const double left = a.read(), right = b.read(); \
        return Counted(left sign right); \
    } \
    static Counted &operator sign##=(Counted &a, const Counted &b) { return a = a sign b; }
COUNTED_OPERATOR(+, 0)
COUNTED_OPERATOR(-, 0)
COUNTED_OPERATOR(*, 1)
COUNTED_OPERATOR(/, 2)
#define COUNTED_RELATION(sign) \
    static bool operator sign(const Counted &a, const Counted &b) { \
        ++operations[4]; \
        return a.read() sign b.read(); \
    }
COUNTED_RELATION(<)
COUNTED_RELATION(<=)
static Counted operator-(const Counted &a) { return Counted(-a.read()); }
static Counted counted_sqrt(const Counted &a) { ++operations[3]; return Counted(a.read()); }
#define SQRT_Counted counted_sqrt
#define DATA_TYPE Counted

// An array of the arena, as a pointer of whatever type a parameter has.
struct Pointer {
    size_t array;
    template <class T> operator T *() const { return reinterpret_cast<T *>(arena() + array * ELEMENTS); }
};

static void begin() {
    memset(operations, 0, sizeof operations);
    memset(seen, 0, sizeof seen);
    for (size_t at = 0; at < ARRAYS * ELEMENTS; ++at) arena()[at].value = 1.0;
}

static void finish() {
    long read = 0, written = 0;
    for (size_t at = 0; at < ARRAYS * ELEMENTS; ++at) {
        read += seen[at] & 1;
        written += seen[at] >> 1;
    }
    printf("%ld %ld %ld %ld %ld %ld %ld\n", operations[0], operations[1], operations[2],
           operations[3], operations[4], 8 * read, 8 * written);
}
