// Takes the place of launches: writes down what the generated host code would launch.
#pragma once
#include <string>
#include <type_traits>

static std::string eatss_recorded;

template <class Value>
static void eatss_record_value(Value value)
{
    if constexpr (std::is_integral_v<Value>) eatss_recorded += " " + std::to_string(value);
    else eatss_recorded += " -";
}

template <class... Values>
static void eatss_record(const char *kernel, long grid[3], dim3 block, long shared, Values... values)
{
    for (int k = 0; k < 3; k++)
        if (grid[k] <= 0) return;
    eatss_recorded += kernel;
    for (int k = 0; k < 3; k++) eatss_recorded += " " + std::to_string(grid[k]);
    for (unsigned size : {block.x, block.y, block.z}) eatss_recorded += " " + std::to_string(size);
    eatss_recorded += " " + std::to_string(shared);
    (eatss_record_value(values), ...);
    eatss_recorded += "\n";
}

#undef EATSS_LAUNCH
// dim3 is unsigned, so that an extent that is not positive shows only when made signed again
#define EATSS_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                    \
    do {                                                                                \
        const dim3 eatss_g = grid;                                                      \
        long eatss_extents[3] = {(int)eatss_g.x, (int)eatss_g.y, (int)eatss_g.z};       \
        eatss_record(#kernel, eatss_extents, block, shared_bytes, __VA_ARGS__);         \
    } while (0)

extern "C" const char *eatss_take_record(void)
{
    static std::string taken;
    taken.swap(eatss_recorded);
    eatss_recorded.clear();
    return taken.c_str();
}
