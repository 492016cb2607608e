/* Signals (C99 7.14). */
#ifndef EATSS_SIGNAL_H
#define EATSS_SIGNAL_H

typedef int sig_atomic_t;

#endif
