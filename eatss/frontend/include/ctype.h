/* Characters (C99 7.4). */
#ifndef EATSS_CTYPE_H
#define EATSS_CTYPE_H

int isalpha(int);
int isdigit(int);
int isspace(int);
int toupper(int);
int tolower(int);

#endif
