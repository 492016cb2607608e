/* Diagnostics (C99 7.2). */
#ifndef EATSS_ASSERT_H
#define EATSS_ASSERT_H

#define assert(expression) ((void)0)

#endif
