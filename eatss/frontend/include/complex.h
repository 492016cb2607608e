/* Complex numbers (C99 7.3); regions cannot use them. */
#ifndef EATSS_COMPLEX_H
#define EATSS_COMPLEX_H

#define complex _Complex
#define I (__extension__ 1.0iF)

#endif
