/* Errors (C99 7.5). */
#ifndef EATSS_ERRNO_H
#define EATSS_ERRNO_H

extern int errno;

#endif
