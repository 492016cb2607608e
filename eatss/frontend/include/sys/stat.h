/* File status (POSIX). */
#ifndef EATSS_SYS_STAT_H
#define EATSS_SYS_STAT_H

#include <sys/types.h>

#endif
