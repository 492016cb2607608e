/* Stack allocation. */
#ifndef EATSS_ALLOCA_H
#define EATSS_ALLOCA_H

#define alloca(size) __builtin_alloca(size)

#endif
