"""What the ``main`` of every generated file needs: options, arrays, timing, comparison."""

SUPPORT = r"""// A program by itself: nvcc -DEATSS_MAIN FILE.cu -o PROGRAM && ./PROGRAM --help
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

static inline void eatss_check_cuda(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(error));
        std::exit(2);
    }
}

// REPETITIONS and name=value from the command line.
struct eatss_options {
    std::vector<std::string> names;
    std::map<std::string, long long> values;
    int repetitions = 5;
    bool wants_help = false;

    explicit eatss_options(std::initializer_list<const char *> known)
        : names(known.begin(), known.end())
    {
    }

    bool read(int count, char **words)
    {
        for (int at = 1; at < count; at++) {
            const std::string word = words[at];
            const size_t equals = word.find('=');
            wants_help = wants_help || word == "--help" || word == "-h";
            const std::string name = equals == std::string::npos ? "" : word.substr(0, equals);
            const std::string text = equals == std::string::npos ? word : word.substr(equals + 1);
            char *end = nullptr;
            const long long value = std::strtoll(text.c_str(), &end, 10);
            const bool is_number = !text.empty() && *end == '\0';
            const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
            if (wants_help)
                return false;
            if (!is_number || (!name.empty() && !is_known) || (name.empty() && value < 1)) {
                std::fprintf(stderr, "error: cannot read '%s'\n", word.c_str());
                return false;
            }
            if (name.empty())
                repetitions = (int)std::min(value, 1000000LL);
            else
                values[name] = value;
        }
        return true;
    }

    // The value of a parameter, or what it usually is; it has to fit its type in the launcher.
    template <typename Integer>
    long long size(const char *name, const char *usual) const
    {
        if (values.count(name) == 0 && usual == nullptr) {
            std::fprintf(stderr, "error: %s has no value; give %s=VALUE\n", name, name);
            std::exit(2);
        }
        const long long value = values.count(name) ? values.at(name) : std::atoll(usual);
        if ((long long)(Integer)value != value) {
            std::fprintf(stderr, "error: %s=%lld does not fit its type\n", name, value);
            std::exit(2);
        }
        return value;
    }
};

static inline size_t eatss_count(std::initializer_list<long long> extents)
{
    size_t count = 1;
    for (long long extent : extents)
        count *= extent > 0 ? (size_t)extent : 0;
    return count;
}

// Numbers in [0, 1), or from 0 to 9 for integers; the same for the same seed.
template <typename Element>
static std::vector<Element> eatss_random_values(size_t count, unsigned long long seed)
{
    std::vector<Element> values(count);
    unsigned long long state = seed * 0x9e3779b97f4a7c15ULL;
    for (Element &value : values) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const bool is_integer = (Element)0.5 == (Element)0;
        value = is_integer ? (Element)((state >> 33) % 10) : (Element)((state >> 40) * 0x1p-24);
    }
    return values;
}

struct eatss_data {
    virtual ~eatss_data() {}
    virtual void restore() = 0;
    virtual size_t bytes() const = 0;
};

// An array on host and device.
template <typename Element>
struct eatss_array : eatss_data {
    const char *name;
    std::vector<Element> initial, expected;
    Element *device = nullptr;

    eatss_array(const char *its_name, size_t count, unsigned long long seed)
        : name(its_name), initial(eatss_random_values<Element>(count, seed)), expected(initial)
    {
        eatss_check_cuda(cudaMalloc(&device, bytes()), name);
    }
    ~eatss_array() override { cudaFree(device); }
    eatss_array(const eatss_array &) = delete;
    eatss_array &operator=(const eatss_array &) = delete;

    size_t bytes() const override { return initial.size() * sizeof(Element); }

    void restore() override
    {
        eatss_check_cuda(cudaMemcpy(device, initial.data(), bytes(), cudaMemcpyHostToDevice), name);
    }

    std::vector<Element> result() const
    {
        std::vector<Element> values(initial.size());
        eatss_check_cuda(cudaMemcpy(values.data(), device, bytes(), cudaMemcpyDeviceToHost), name);
        return values;
    }

    void print_sums() const
    {
        double sum = 0, magnitudes = 0;
        for (Element value : result()) {
            sum += (double)value;
            magnitudes += std::fabs((double)value);
        }
        std::printf("  %s: sum %.10g, sum of magnitudes %.10g\n", name, sum, magnitudes);
    }

    int differs() const;
};

// Runs once to warm up, then `repetitions` times on the same data, which is copied back before
// each run, outside the time that is measured.
template <typename Launch>
static void eatss_measure(const char *entry, Launch launch, const std::vector<eatss_data *> &all,
                          const std::vector<const char *> &assumptions, int repetitions)
{
    cudaEvent_t start, stop;
    eatss_check_cuda(cudaEventCreate(&start), "cudaEventCreate");
    eatss_check_cuda(cudaEventCreate(&stop), "cudaEventCreate");
    std::vector<float> times_ms;
    for (int run = -1; run < repetitions; run++) {
        for (eatss_data *data : all)
            data->restore();
        eatss_check_cuda(cudaEventRecord(start), entry);
        const int code = launch();
        if (code < 0) {
            const size_t which = (size_t)(-code - 1);
            const char *why = which < assumptions.size() ? assumptions[which] : "an assumption";
            std::fprintf(stderr, "error: %s does not run: %s\n", entry, why);
            std::exit(2);
        }
        eatss_check_cuda((cudaError_t)code, entry);
        eatss_check_cuda(cudaEventRecord(stop), entry);
        eatss_check_cuda(cudaEventSynchronize(stop), entry);
        float time_ms = 0;
        eatss_check_cuda(cudaEventElapsedTime(&time_ms, start, stop), entry);
        if (run >= 0)
            times_ms.push_back(time_ms);
    }
    eatss_check_cuda(cudaEventDestroy(start), "cudaEventDestroy");
    eatss_check_cuda(cudaEventDestroy(stop), "cudaEventDestroy");
    std::sort(times_ms.begin(), times_ms.end());
    size_t bytes = 0;
    for (const eatss_data *data : all)
        bytes += data->bytes();
    const size_t middle = times_ms.size() / 2;
    const float median_ms = (times_ms[(times_ms.size() - 1) / 2] + times_ms[middle]) / 2;
    std::printf("  time: min %.4f ms, median %.4f ms of %d runs; data: %zu bytes\n", times_ms[0],
                median_ms, repetitions, bytes);
}
"""

TRUTH_SUPPORT = r"""
// A bool in a vector, where bools have no addresses; of numbers, whether they are odd.
struct eatss_truth {
    bool value;

    eatss_truth() = default;
    template <typename Number>
    explicit eatss_truth(Number number) : value((long long)number & 1)
    {
    }
    template <typename Number>
    explicit operator Number() const
    {
        return (Number)value;
    }
    bool operator==(eatss_truth other) const { return value == other.value; }
};
"""

CHECK_SUPPORT = r"""// The original, compiled as C and linked.
template <typename Element>
int eatss_array<Element>::differs() const
{
    const bool is_integer = (Element)0.5 == (Element)0;
    const double allowed = is_integer ? 0 : sizeof(Element) == 4 ? 1e-3 : 1e-9;
    const std::vector<Element> found = result();
    double largest = 0, difference = 0;
    for (size_t at = 0; at < found.size(); at++) {
        const double one = (double)found[at], other = (double)expected[at];
        if (std::isfinite(other))
            largest = std::max(largest, std::fabs(other));
        if (one == other || (std::isnan(one) && std::isnan(other)))
            continue;
        difference = std::isfinite(one - other) ? std::max(difference, std::fabs(one - other))
                                                : HUGE_VAL;
    }
    const double relative = difference == 0 ? 0 : difference / largest;
    std::printf("  %s: largest relative difference %.3g, allowed %.3g\n", name, relative, allowed);
    return relative <= allowed ? 0 : 1;
}

"""
