// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the stock compiler run prepass passes:
//
//   iree-compile --load=libprepass_plugin.so model.mlir --iree-preprocessing-pass-pipeline=...
//
// IREE exports only its C API, through which a library cannot register a pass. So this one replaces the process: its
// constructor runs before the flags after --load are parsed, and executes prepass.tools.plugin with the same arguments
// in the Python that prepass is installed in. Loaded into any other program it does nothing.
//
// PREPASS_PYTHON names the Python to use. PREPASS_PLUGIN_ACTIVE is set for the new process, which removes it once it
// runs prepass. Seeing it here means that the "Python" was the compiler again, which would go round for ever.

#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kActive[] = "PREPASS_PLUGIN_ACTIVE";

// `python -m` would import from the working directory first, where a numpy.py may lie; -c lets us drop that entry (the
// flag -P does the same, from Python 3.11 on). It also turns a Python without prepass into one line.
static const char kBootstrap[] =
    "import sys\n"
    "if sys.path[:1] == ['']: del sys.path[0]\n"
    "try: from prepass.tools.plugin import main\n"
    "except ImportError as error:\n"
    "    sys.exit(f'prepass plugin: {sys.executable} cannot import prepass ({error});'\n"
    "             ' set PREPASS_PYTHON to the Python that prepass is installed in')\n"
    "main(sys.argv[1:])\n";

// Ends the process: to go on would compile without the passes the user asked for.
#define FAIL(...)                                                                                                      \
  do {                                                                                                                 \
    fprintf(stderr, "prepass plugin: " __VA_ARGS__);                                                                   \
    fputc('\n', stderr);                                                                                               \
    _exit(1);                                                                                                          \
  } while (0)

// Returns the compiler's name if this process is one, otherwise NULL.
static const char *compiler_name(void) {
  static char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length < 0) return NULL;
  program[length] = '\0';
  const char *slash = strrchr(program, '/');
  const char *name = slash ? slash + 1 : program;
  return strcmp(name, "iree-compile") == 0 || strcmp(name, "iree-opt") == 0 ? name : NULL;
}

// Reads the arguments, each ended by NUL, with a further NUL at the end. Constructors of a library that is loaded late
// get no argv, hence /proc.
static char *read_command_line(size_t *size) {
  int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) FAIL("cannot open /proc/self/cmdline: %s", strerror(errno));
  size_t capacity = 4096, used = 0;
  char *text = malloc(capacity);
  for (;;) {
    if (!text) FAIL("out of memory");
    ssize_t count = read(file, text + used, capacity - used - 1);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) FAIL("cannot read /proc/self/cmdline: %s", strerror(errno));
    if (count == 0) break;
    used += (size_t)count;
    if (used + 1 == capacity) text = realloc(text, capacity *= 2);
  }
  close(file);
  text[used] = '\0';
  *size = used;
  return text;
}

// Builds: python -c <bootstrap> <compiler> <arguments after the program's name...> NULL. The caller fills in python.
static char **build_arguments(const char *compiler) {
  size_t size = 0, count = 0;
  char *text = read_command_line(&size);
  for (size_t i = 0; i < size; ++i) count += text[i] == '\0';
  char **arguments = malloc((count + 5) * sizeof *arguments);
  if (!arguments) FAIL("out of memory");
  size_t next = 1;
  arguments[next++] = (char *)"-c";
  arguments[next++] = (char *)kBootstrap;
  arguments[next++] = (char *)compiler;
  for (size_t i = strlen(text) + 1; i < size; i += strlen(text + i) + 1) arguments[next++] = text + i;
  arguments[next] = NULL;
  return arguments;
}

// Finds "python3.11" from ".../lib/python3.11/..." or lib64; the name is "python3" if no such folder is on the path.
static void python_name(const char *path, char *name, size_t size) {
  static const char marker[] = "/python3.";
  snprintf(name, size, "python3");
  const char *start = NULL;
  for (const char *at = path; (at = strstr(at, marker)); ++at) start = at;
  if (!start) return;
  const char *minor = start + sizeof marker - 1;
  size_t digits = strspn(minor, "0123456789");
  if (digits > 0 && minor[digits] == '/') snprintf(name, size, "python3.%.*s", (int)digits, minor);
}

// Sets `python` to <parent>/bin/<name> for the nearest parent of `path`, the root aside, that has one. `name` may be
// "python3" too: a prefix whose library folder says 3.11 need not hold a link named python3.11.
static int find_in_parents(const char *path, const char *name, char *python, size_t size) {
  const char *names[] = {name, "python3"};
  for (size_t length = strlen(path); length > 1;) {
    while (length > 0 && path[length - 1] != '/') --length;
    if (length > 0) --length;
    if (length == 0) break;
    for (size_t i = 0; i < 2; ++i) {
      int written = snprintf(python, size, "%.*s/bin/%s", (int)length, path, names[i]);
      if (written > 0 && (size_t)written < size && access(python, X_OK) == 0) return 1;
    }
  }
  return 0;
}

// Names the Python that this library is installed for: a path, or a name to look up in PATH.
static void find_python(char *python, size_t size) {
  Dl_info info;
  char path[PATH_MAX];
  if (!dladdr((const void *)kActive, &info) || !info.dli_fname || !realpath(info.dli_fname, path))
    FAIL("cannot find the library's own path; set PREPASS_PYTHON");
  char name[32];
  python_name(path, name, sizeof name);
  if (!find_in_parents(path, name, python, size)) snprintf(python, size, "%s", name);
}

__attribute__((constructor)) static void prepass_plugin_loaded(void) {
  const char *compiler = compiler_name();
  if (!compiler) return;
  const char *chosen = getenv("PREPASS_PYTHON");
  if (getenv(kActive))
    FAIL("%s was started by the plugin itself; PREPASS_PYTHON (%s) must name a Python, and %s must not be set", compiler,
         chosen && *chosen ? chosen : "not set", kActive);

  char found[PATH_MAX + 32];
  if (!chosen || !*chosen) {
    find_python(found, sizeof found);
    chosen = found;
  }
  char **arguments = build_arguments(compiler);
  arguments[0] = (char *)chosen;
  if (setenv(kActive, "1", 1) != 0) FAIL("cannot set %s: %s", kActive, strerror(errno));
  execvp(chosen, arguments);
  FAIL("cannot run %s: %s; set PREPASS_PYTHON to the Python that prepass is installed in", chosen, strerror(errno));
}
