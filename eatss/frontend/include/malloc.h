/* Allocation. */
#ifndef EATSS_MALLOC_H
#define EATSS_MALLOC_H

#include <stdlib.h>

#endif
