/* Operating system (POSIX). */
#ifndef EATSS_UNISTD_H
#define EATSS_UNISTD_H

#include <sys/types.h>
int usleep(unsigned int);
unsigned int sleep(unsigned int);
int getpid(void);
long sysconf(int);
#define _SC_PAGESIZE 30

#endif
