/* Scheduling (POSIX). */
#ifndef EATSS_SCHED_H
#define EATSS_SCHED_H

#include <sys/types.h>

#endif
