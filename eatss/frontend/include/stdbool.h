/* Boolean type (C99 7.16). */
#ifndef EATSS_STDBOOL_H
#define EATSS_STDBOOL_H

#define bool _Bool
#define true 1
#define false 0

#endif
