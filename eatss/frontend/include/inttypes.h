/* Format conversion of integer types (C99 7.8). */
#ifndef EATSS_INTTYPES_H
#define EATSS_INTTYPES_H

#include <stdint.h>
#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRId64 "ld"
#define PRIu64 "lu"
#define PRIx64 "lx"

#endif
