/* Strings (POSIX). */
#ifndef EATSS_STRINGS_H
#define EATSS_STRINGS_H

#include <string.h>
int strcasecmp(const char *, const char *);

#endif
