/* Stands in the place of a Python that a server forks: see forking_server.py.

   stand_in SOCKET PARENT WORDS...

   Where PARENT is not 0, it ends with the thread of that process which started it, as a guard does
   (eatss.base.guard). Starting this takes a millisecond. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;
static int server, guards;

static void pass_on(int number) {
    send(server, "t", 1, MSG_NOSIGNAL);
    if (guards) alarm(3); /* which ends it, and with it what it stands for */
}

static void write_all(const char *text, size_t length) {
    while (length > 0) {
        ssize_t written = write(server, text, length);
        if (written <= 0) exit(1);
        text += written, length -= (size_t)written;
    }
}

static void write_text(FILE *to, const char *text) { fwrite(text, 1, strlen(text) + 1, to); }

int main(int n, char **words) {
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    char *text, folder[4096], code[17] = "1";
    size_t length;

    guards = atoi(words[2]);
    strncpy(place.sun_path, words[1], sizeof place.sun_path - 1);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(server, (struct sockaddr *)&place, sizeof place) != 0) return 1;

    FILE *asked = open_memstream(&text, &length);
    fprintf(asked, "%d", n - 3);
    for (int k = 0; k < 3; k++) {
        struct sigaction action;
        sigaction(ending[k], NULL, &action);
        if (action.sa_handler == SIG_IGN) fprintf(asked, " %d", ending[k]);
    }
    fputc(0, asked);
    write_text(asked, getcwd(folder, sizeof folder) ? folder : "/");
    for (int k = 3; k < n; k++) write_text(asked, words[k]);
    for (char **one = environ; *one; one++) write_text(asked, *one);
    fclose(asked);

    signal(SIGTERM, pass_on);
    if (guards) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != guards) return 127;
    }

    int streams[] = {0, 1, 2};
    char head[] = {(char)(length >> 24), (char)(length >> 16), (char)(length >> 8), (char)length};
    char space[CMSG_SPACE(sizeof streams)];
    struct iovec data = {head, sizeof head};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    struct cmsghdr *sent = CMSG_FIRSTHDR(&message);
    sent->cmsg_level = SOL_SOCKET, sent->cmsg_type = SCM_RIGHTS;
    sent->cmsg_len = CMSG_LEN(sizeof streams);
    memcpy(CMSG_DATA(sent), streams, sizeof streams);
    if (sendmsg(server, &message, 0) < 0) return 1;
    write_all(text, length);
    close(0), close(1); /* whoever reads from the worker sees when it closes them */

    ssize_t got = read(server, code, sizeof code - 1);
    if (got > 0) code[got] = 0;
    int ended = atoi(code);
    if (ended >= 0) return ended;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(-ended, SIG_DFL);
    kill(getpid(), -ended);
    return 1;
}
