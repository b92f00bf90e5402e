/* The hook client: carries one event from a coding agent to the Checkrein server, and the answer back.
 *
 *     checkrein-hook DOOR-FILE AGENT MODE SECONDS
 *     checkrein-hook DOOR-FILE mcp      connects an MCP client's standard streams to the server's gateway
 *
 * It decides nothing. client.py does the same where there is no C compiler: change both together.
 * It starts with every tool call, so it uses no stdio and no heap: static pages that are never touched
 * cost nothing. One timer ends every wait; its handler may call fail(), which makes only system calls.
 * When a server ends while a person is asked, the same is asked of the next one, until SECONDS are over.
 *
 * INVARIANT: whatever is unexpected ends in fail(): a gate refuses, the pump ends, the other modes step aside.
 */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h> /* only for rename() */
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#ifndef FIRST_ANSWER_MS /* limits change only when compiling: agents choose the environment of their hooks */
#define FIRST_ANSWER_MS 10000
#define NEXT_FRAME_MS 15000
#define START_MS 6000
#endif
enum { PAUSE_NS = 250000000 }; /* before each new try, while a person is being asked */
enum { PAYLOAD_MAX = 8 << 20, REPLY_MAX = 1 << 20, HEADER_MAX = 64 << 10, DOOR_MAX = 128 << 10, LINES_MAX = 512 };
enum { GATE, PERMISSION, TELL, STATUS, PUMP };      /* as in MODES, where hooks may name them */
enum { SECONDS_MAX = 86400 };
enum { MAGIC, SOCKET, SPOOL, PYTHON, ENVIRONMENT }; /* lines of the door file */

static const char *const MODES[] = {"gate", "permission", "tell", "status"};
static const char *const PASSED_ON[] = {"CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_ENTRYPOINT",
                                        "CLAUDE_PROJECT_DIR", "CLAUDE_PID", "GEMINI_PROJECT_DIR"};
#define LIKE_CLAUDE "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\"," \
                    "\"permissionDecisionReason\":\""
static const struct agent { const char *name, *before, *between, *after; } AGENTS[] = {
    {"claude-code", LIKE_CLAUDE, NULL, "\"}}\n"},
    {"codex", LIKE_CLAUDE, NULL, "\"}}\n"},
    {"gemini-cli", "{\"decision\":\"deny\",\"reason\":\"", NULL, "\"}\n"},
    {"copilot-cli", "{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"", NULL, "\"}\n"},
    {"cursor", "{\"permission\":\"deny\",\"user_message\":\"", "\",\"agent_message\":\"", "\"}\n"},
};
#define COUNT(table) (sizeof(table) / sizeof *(table))
#define JOIN(into, ...) join(into, sizeof(into), (const char *[]){__VA_ARGS__, NULL})

static unsigned mode = GATE; /* until the command line says otherwise */
static const struct agent *agent;
static const char *door_path, *late = "";
static char door[DOOR_MAX], *line[LINES_MAX + 1]; /* the door file, and its lines up to a NULL */
static char space[HEADER_MAX + PAYLOAD_MAX];      /* the header ends where the payload begins */
static char *const payload = space + HEADER_MAX;
static char *request; /* the frame in `space`, while it is not answered */
static char reply[REPLY_MAX];
static size_t payload_length;
static int truncated;
static int passes; /* the pump's own streams may go to the server: offered, then agreed */
static int person_asked; /* said so by a server: when it ends, the next one knows the question */
static struct timespec began;
static int64_t deadline;
static struct flow { /* one direction of the pump; read only when nothing is left to write */
    int from, to, over;
    size_t at, end, at_once;
    char bytes[64 << 10];
} up, down;

static size_t join(char *into, size_t room, const char **part)
{
    size_t length = 0, more;
    for (; *part; part++, length += more) {
        if ((more = strlen(*part)) >= room - length)
            return 0; /* does not fit */
        memcpy(into + length, *part, more + 1);
    }
    return length;
}

static int put(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t done = write(fd, bytes, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return 0;
        bytes += done, length -= (size_t)done;
    }
    return 1;
}

static int get(int fd, char *bytes, size_t length)
{
    while (length) {
        ssize_t done = read(fd, bytes, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return 0;
        bytes += done, length -= (size_t)done;
    }
    return 1;
}

static void refuse(const char *why, const char *detail)
{
    static char shown[1001], reason[2048], answer[8192];
    /* A path may hold quotes, terminal codes, anything. */
    for (size_t i = 0; i < sizeof shown - 1 && detail[i]; i++)
        shown[i] = detail[i] < ' ' || detail[i] > '~' || detail[i] == '"' || detail[i] == '\\' ? '?' : detail[i];
    if (mode == PUMP)
        JOIN(reason, "checkrein: no tools can be offered: ", why, shown, ". Run `checkrein doctor`.");
    else
        JOIN(reason, "Checkrein could not judge this call, so it is refused: ", why, shown,
             ". Ask the user to run `checkrein doctor`.");
    if (agent && agent->between)
        JOIN(answer, agent->before, reason, agent->between, reason, agent->after);
    else if (agent)
        JOIN(answer, agent->before, reason, agent->after);
    put(STDERR_FILENO, reason, strlen(reason)); /* first: some agents ignore exit code 2 without it */
    put(STDERR_FILENO, "\n", 1);
    put(STDOUT_FILENO, answer, strlen(answer));
}

static const char *digits(char *end, int64_t number, int width)
{
    for (*end = 0; number || width > 0; number /= 10, width--)
        *--end = (char)('0' + number % 10);
    return end;
}

static void save_for_later(void)
{
    static char part[8192], name[8192], number[3][24];
    if (!JOIN(name, line[SPOOL], "/", digits(number[0] + 23, began.tv_sec, 1), ".",
              digits(number[1] + 23, began.tv_nsec, 9), "-", digits(number[2] + 23, getpid(), 1)) ||
        !JOIN(part, name, ".part"))
        return;
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t length = (size_t)(payload + payload_length - request) - 4; /* without the frame's length */
    if (fd >= 0 && (!put(fd, request + 4, length) || fsync(fd) || rename(part, name)))
        unlink(part);
}

static void on_alarm(void (*then)(int))
{
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, then);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL); /* blocked by the agent, or by being in the handler */
}

static void leave(int signal_number)
{
    (void)signal_number;
    _exit(mode == GATE ? 2 : mode == PUMP);
}

static void fail(const char *why, const char *detail)
{
    static const char not_running[] = "checkrein: not running\n";
    on_alarm(leave); /* failing does not wait for ever either; a busy disk gets a little longer */
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = mode == TELL ? 5 : 1}, NULL);
    if (mode == GATE || mode == PUMP)
        refuse(why, detail);
    else if (mode == TELL && request)
        save_for_later();
    else if (mode == STATUS)
        put(STDOUT_FILENO, not_running, sizeof not_running - 1);
    leave(0);
}

static void time_is_up(int signal_number)
{
    (void)signal_number;
    fail(late, "");
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wait_at_most(int64_t ms, const char *what_if_not)
{
    int64_t left = deadline - now_ms();
    ms = ms < left ? ms : left > 1 ? left : 1;
    late = what_if_not;
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {ms / 1000, ms % 1000 * 1000}}, NULL);
}

static void read_command_line(int count, char **word)
{
    static char *nothing[] = {"", "", "", "", ""};
    int pumps = count == 3 && !strcmp(word[2], "mcp"), known = 0, seconds = SECONDS_MAX;
    if (pumps)
        mode = PUMP;
    else {
        word = count == 5 ? word : nothing;
        size_t length = strlen(word[4]);
        for (unsigned i = 0; i < COUNT(MODES); i++)
            if (!strcmp(word[3], MODES[i]))
                mode = i, known = 1;
        for (unsigned i = 0; i < COUNT(AGENTS); i++)
            if (!strcmp(word[2], AGENTS[i].name))
                agent = &AGENTS[i];
        seconds = length <= 5 && strspn(word[4], "0123456789") == length ? atoi(word[4]) : 0;
        if (!known || !agent || seconds < 1 || seconds > SECONDS_MAX)
            fail("its hook is not registered as `checkrein install` does it", "");
    }
    door_path = word[1];
    deadline = now_ms() + seconds * 1000;
    for (int fd = 0, flags; fd <= 2; fd++) {
        /* The next file opened would take the place of a closed one, and the answer would go there. */
        if ((flags = fcntl(fd, F_GETFL)) < 0)
            fail("the agent closed its hook's input or output", "");
        if (flags & O_NONBLOCK && !pumps) /* the pump never waits in them, and others may share them */
            fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
}

static void read_payload(void)
{
    wait_at_most(INT64_MAX, "the agent did not finish its message in time");
    for (;;) {
        size_t room = PAYLOAD_MAX - payload_length;
        /* What is too much is read all the same: the agent must not meet a closed pipe. */
        ssize_t done = read(STDIN_FILENO, room ? payload + payload_length : reply, room ? room : sizeof reply);
        if (done == 0)
            return;
        if (done < 0 && errno != EINTR)
            fail("the agent's message cannot be read", "");
        if (done > 0 && room)
            payload_length += (size_t)done;
        else if (done > 0)
            truncated = 1;
    }
}

static void read_door(void)
{
    struct stat about;
    size_t lines = 0;
    int fd = open(door_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        fail("Checkrein is not set up: there is no file ", door_path);
    /* INVARIANT: whoever can write this file chooses the program that is started, so only the user may. */
    if (fstat(fd, &about) || !S_ISREG(about.st_mode) || about.st_uid != geteuid() || about.st_mode & 022)
        fail("others than the user can write the file ", door_path);
    ssize_t length = read(fd, door, sizeof door);
    close(fd);
    int good = length > 0 && length < DOOR_MAX && door[length - 1] == '\n' && !memchr(door, 0, (size_t)length);
    for (char *at = door; good && at < door + length; at += strlen(at) + 1) {
        *strchr(at, '\n') = 0;
        line[lines] = at;
        good = lines < LINES_MAX && (lines == MAGIC         ? !strcmp(at, "checkrein-door 1")
                                     : lines < ENVIRONMENT ? *at == '/'
                                                            : *at != '=' && strchr(at, '='));
        lines++;
    }
    if (!good || lines < ENVIRONMENT)
        fail("something damaged the file ", door_path);
    line[lines] = NULL;
}

/* Whether the server can use this one itself, and never wait in it whatever others do to its flags. */
static int can_be_passed(int fd, int way)
{
    struct stat about;
    struct sockaddr_storage name;
    socklen_t size = sizeof name, number_size = sizeof(int);
    int flags = fcntl(fd, F_GETFL), kind;
    if (fstat(fd, &about) || flags < 0 || ((flags & O_ACCMODE) != way && (flags & O_ACCMODE) != O_RDWR))
        return 0;
    if (S_ISSOCK(about.st_mode))
        return !getsockname(fd, (struct sockaddr *)&name, &size) && name.ss_family == AF_UNIX &&
               !getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &number_size) && kind == SOCK_STREAM;
    if (!S_ISFIFO(about.st_mode))
        return 0;
#ifdef __linux__
    static char path[] = "/proc/self/fd/N"; /* the server opens it again, for flags of its own: see if it may */
    path[sizeof path - 2] = (char)('0' + fd);
    return (fd = open(path, way | O_NONBLOCK | O_CLOEXEC)) >= 0 && !close(fd);
#else
    return 1;
#endif
}

static void build_request(const char *seconds)
{
    static char header[HEADER_MAX], folder[PATH_MAX];
    const char *part[8 + 4 * COUNT(PASSED_ON) + 2], **to = part;
    *to++ = "SIZEcheckrein 1 " CHECKREIN_VERSION "\n";
    if (mode == PUMP) {
        if (!getcwd(folder, sizeof folder) || strchr(folder, '\n'))
            fail("the folder it runs in has no usable name", "");
        passes = can_be_passed(STDIN_FILENO, O_RDONLY) && can_be_passed(STDOUT_FILENO, O_WRONLY);
        *to++ = "mcp\nCWD=", *to++ = folder, *to++ = passes ? "\nPASSES=1" : "";
    } else {
        *to++ = "hook ", *to++ = agent->name;
        *to++ = " ", *to++ = MODES[mode], *to++ = " ", *to++ = seconds, *to++ = "\nSTREAMS=1";
    }
    for (size_t i = 0; i < COUNT(PASSED_ON); i++) {
        const char *value = getenv(PASSED_ON[i]);
        if (value && strchr(value, '\n'))
            fail("there is a line break in the environment's ", PASSED_ON[i]);
        if (value)
            *to++ = "\n", *to++ = PASSED_ON[i], *to++ = "=", *to++ = value;
    }
    *to++ = truncated ? "\nTRUNCATED=1\n\n" : "\n\n", *to = NULL;
    size_t length = join(header, sizeof header, part);
    if (!length)
        fail("the hook's environment is too large", "");
    uint32_t size = htonl((uint32_t)(length - sizeof size + payload_length));
    memcpy(header, &size, sizeof size);
    request = memcpy(payload - length, header, length);
}

static int try_to_connect(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!JOIN(to.sun_path, line[SOCKET]))
        fail("this path is too long for a socket: ", line[SOCKET]);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC))
        fail("no socket can be opened", "");
    if (!connect(fd, (struct sockaddr *)&to, sizeof to))
        return fd;
    if (errno != ENOENT && errno != ECONNREFUSED)
        fail("nothing can connect to ", line[SOCKET]);
    close(fd);
    return -1;
}

static void close_the_rest(void)
{
    long last = sysconf(_SC_OPEN_MAX), fd = 3;
#ifdef SYS_close_range
    fd = syscall(SYS_close_range, 3, ~0U, 0) ? 3 : last;
#endif
    for (; fd < last && fd < 65536; fd++)
        close((int)fd);
}

static void become_server(void)
{
    char *words[] = {line[PYTHON], "-I", "-m", "checkrein", "serve", "--on-demand", NULL};
    sigset_t none;
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || setsid() < 0 || chdir("/"))
        _exit(127);
    close_the_rest();
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL); /* what the agent ignores, the server must not */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(line[PYTHON], words, line + ENVIRONMENT);
    _exit(127);
}

/* A pump stays, and the server must not stay below it: whoever ends an MCP client's children would end it too.
 * So one in between starts it, ends as the server ends, and is sent away when the server listens. */
static void be_in_between(void)
{
    int status = 0;
    pid_t server = fork();
    if (server == 0)
        become_server();
    close_the_rest();
    close(0), close(1), close(2);
    signal(SIGALRM, SIG_DFL);
    alarm(START_MS / 1000 + 1);
    _exit(server < 0 || waitpid(server, &status, 0) < 0 || status ? 127 : 0);
}

/* Of many clients that find no server one holds the lock and starts it; the others wait for the lock.
 * -1 when there is still none, but a person is being asked: then it is tried again. */
static int connect_or_start(void)
{
    static char lock_path[8192];
    int fd, lock, status;
    wait_at_most(person_asked ? INT64_MAX : START_MS, "the server did not start in time");
    if ((fd = try_to_connect()) >= 0 || (person_asked && mode == PERMISSION))
        return fd;
    if (mode == PERMISSION || mode == STATUS)
        fail("no server is running", "");
    if (!JOIN(lock_path, door_path, ".lock") ||
        (lock = open(lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0 || flock(lock, LOCK_EX))
        fail("nothing can be locked beside the file ", door_path);
    if ((fd = try_to_connect()) < 0) {
        pid_t server = fork();
        if (server == 0 && mode == PUMP)
            be_in_between();
        if (server == 0)
            become_server();
        while ((fd = try_to_connect()) < 0) {
            int over = server < 0 || waitpid(server, &status, WNOHANG) == server;
            if (over && person_asked)
                break;
            /* Status 0: another server was quicker, and will be listening soon. */
            if (over && (server < 0 || status))
                fail("the server stopped while starting; it was run by ", line[PYTHON]);
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        }
        if (mode == PUMP && server > 0 && !waitpid(server, &status, WNOHANG))
            kill(server, SIGKILL), waitpid(server, &status, 0);
    }
    close(lock);
    return fd;
}

static int peer_is_me(int fd)
{
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid();
#else
    uid_t user;
    gid_t group;
    return !getpeereid(fd, &user, &group) && user == geteuid();
#endif
}

static uint32_t get_number(const char *bytes)
{
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return ntohl(number);
}

/* Our standard input and output, with the one byte that they need to go with. */
static int put_streams(int fd)
{
    int streams[] = {STDIN_FILENO, STDOUT_FILENO};
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof streams)]; } extra = {.room = {0}};
    struct iovec word = {.iov_base = ".", .iov_len = 1};
    struct msghdr message = {.msg_iov = &word, .msg_iovlen = 1,
                             .msg_control = extra.room, .msg_controllen = sizeof extra.room};
    ssize_t done;
    extra.head.cmsg_level = SOL_SOCKET, extra.head.cmsg_type = SCM_RIGHTS;
    extra.head.cmsg_len = CMSG_LEN(sizeof streams);
    memcpy(CMSG_DATA(&extra.head), streams, sizeof streams);
    while ((done = sendmsg(fd, &message, 0)) < 0 && errno == EINTR)
        ;
    return done == 1;
}

/* The exit code; -1 when the server ended while a person was asked. */
static int ask(int fd)
{
    char head[4];
    size_t length = 0;
    wait_at_most(FIRST_ANSWER_MS, "the server did not answer in time");
    int alive = put(fd, request, (size_t)(payload + payload_length - request));
    while (alive && (alive = get(fd, head, 4)) && (length = get_number(head)) <= 1) {
        if (length && mode != PUMP) { /* the server asks the kernel who is at the other ends of our streams */
            alive = get(fd, reply, 1) && put_streams(fd);
            continue;
        }
        person_asked = mode == GATE || mode == PERMISSION;
        wait_at_most(NEXT_FRAME_MS, late); /* a sign of life */
    }
    int sensible = length >= 5 && length <= REPLY_MAX;
    if (alive && sensible)
        alive = get(fd, reply, length);
    if (!alive && person_asked)
        return -1;
    if (!alive || !sensible)
        fail("the server broke off", "");
    size_t out = get_number(reply + 1);
    if ((reply[0] != 0 && reply[0] != 2) || out > length - 5)
        fail("the server's answer makes no sense", "");
    request = NULL; /* answered: nothing to keep for later */
    passes = passes && out == 4 && !memcmp(reply + 5, "PASS", 4); /* an older server does not say so */
    wait_at_most(INT64_MAX, "the agent did not take the answer");
    if ((mode != PUMP && !put(STDOUT_FILENO, reply + 5, out)) ||
        !put(STDERR_FILENO, reply + 5 + out, length - 5 - out))
        fail(late, "");
    return reply[0];
}

/* INVARIANT: nothing of the client's has been read before this, so nothing is lost or told twice. */
static int hand_over(int fd)
{
    return put_streams(fd);
}

/* The server has the client's streams; this process shows that the client is there, and ends as the server says.
 * Its last word comes where the client had no more to say; a socket that ends without is a server that ended. */
static void stand_by(int fd)
{
    char word;
    ssize_t done = -1;
    struct pollfd look[] = {{.fd = fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};
    int handed_over = hand_over(fd);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    while (handed_over && done < 0) {
        if (poll(look, COUNT(look), -1) < 0)
            continue;
        if (look[0].revents && (done = read(fd, &word, 1)) < 0 && errno != EINTR)
            done = 0;
        if (done == 1)
            _exit(0);
        if (look[1].revents)
            _exit(1); /* nobody reads any more */
    }
    fail("the server ended", "");
}

static int nothing_yet(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static void take_in(struct flow *one)
{
    ssize_t done = read(one->from, one->bytes, sizeof one->bytes);
    if (done > 0)
        one->at = 0, one->end = (size_t)done;
    else if (done == 0 || !nothing_yet())
        one->over = 1;
}

static int pass_on(struct flow *one)
{
    size_t left = one->end - one->at;
    ssize_t done = write(one->to, one->bytes + one->at, left < one->at_once ? left : one->at_once);
    if (done > 0)
        one->at += (size_t)done;
    return done >= 0 || nothing_yet();
}

/* Bytes both ways until the server closes. The client's end is passed on, and the last answers still come.
 * Only the socket is made not to wait. A pipe that poll() calls ready takes PIPE_BUF bytes without waiting. */
static void pump(int fd)
{
    int told = 0;
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    up.from = STDIN_FILENO, up.to = down.from = fd, down.to = STDOUT_FILENO;
    up.at_once = sizeof up.bytes, down.at_once = PIPE_BUF;
    while (!down.over || down.at < down.end) {
        int waits = up.at < up.end, full = down.at < down.end;
        /* -1 leaves out what is of no interest: an end would be reported again and again. */
        struct pollfd look[] = {{.fd = up.over || waits ? -1 : up.from, .events = POLLIN},
                                {.fd = waits ? up.to : -1, .events = POLLOUT},
                                {.fd = down.over || full ? -1 : down.from, .events = POLLIN},
                                {.fd = down.to, .events = full ? POLLOUT : 0}};
        if (poll(look, COUNT(look), -1) < 0)
            continue;
        if (look[0].revents)
            take_in(&up);
        if (up.at < up.end && !pass_on(&up))
            up.over = told = -1, up.at = up.end; /* its last words may still be there to read */
        if (up.over && !told && up.at == up.end)
            told = !shutdown(fd, SHUT_WR) ? 1 : -1;
        if (look[2].revents)
            take_in(&down);
        else if (look[3].revents && (!full || !pass_on(&down)))
            _exit(1); /* nobody reads any more */
    }
    if (told < 1)
        fail("the server ended", "");
    _exit(0);
}

int main(int count, char **word)
{
    signal(SIGPIPE, SIG_IGN);
    on_alarm(time_is_up);
    clock_gettime(CLOCK_REALTIME, &began);
    read_command_line(count, word);
    if (mode != PUMP)
        read_payload();
    read_door();
    build_request(mode == PUMP ? NULL : word[4]);
    for (int fd, code;; nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL)) {
        if ((fd = connect_or_start()) < 0)
            continue;
        if (!peer_is_me(fd))
            fail("another user listens at ", line[SOCKET]);
        if ((code = ask(fd)) == 0 && mode == PUMP)
            passes ? stand_by(fd) : pump(fd);
        if (code >= 0)
            _exit(mode == PUMP ? 1 : code);
        close(fd);
    }
}
