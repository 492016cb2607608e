/* Types (POSIX). */
#ifndef EATSS_SYS_TYPES_H
#define EATSS_SYS_TYPES_H

#include <stddef.h>
#include <stdint.h>
typedef long ssize_t;
typedef long off_t;
typedef int pid_t;
typedef unsigned int uid_t;

#endif
