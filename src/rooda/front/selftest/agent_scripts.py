"""Parts of the scripts of misbehaving agents: a prelude, each misbehaviour, and the end."""

PRELUDE = r"""
import fcntl, os, signal, sys, time

END = sys.argv[1]
HERE, LEADER, LATEST = os.getcwd(), os.getpid(), time.monotonic() + 120
taken, cut = {1: 0, 2: 0}, set()


def write(name, text):
    "Write a complete file at once."
    draft = os.path.join(HERE, f"{name}.{os.getpid()}.new")
    with open(draft, "w") as file:
        file.write(str(text))
    os.rename(draft, os.path.join(HERE, name))


def stat(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def state(pid):
    if os.path.exists("/proc/self/stat"):
        return stat(pid)[0]
    return os.popen(f"ps -o state= -p {pid}").read().strip()[:1]


def note(name, pid=None):
    pid = pid or os.getpid()
    write(f"{name}.pid", f"{pid} {stat(pid)[19] if os.path.exists('/proc/self/stat') else 0}")


def is_on():
    return time.monotonic() < LATEST and not os.path.exists(os.path.join(HERE, "stop"))


def stay():
    while is_on():
        time.sleep(0.5)


def child(name, act=lambda: None, apart=False):
    pid = os.fork()
    if pid == 0:
        try:
            if apart:
                os.setsid()
            note(name)
            act()
            stay()
        finally:
            os._exit(1)
    return pid


def wait_for(*names):
    while not all(os.path.exists(os.path.join(HERE, name)) for name in names):
        time.sleep(0.002)


def ignore_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def say(words, fd=1):
    "If the reader is too slow for a non-blocking stream, print nothing more to it."
    rest = memoryview(words)
    while rest and fd not in cut:
        try:
            count = os.write(fd, rest)
        except BlockingIOError:
            cut.add(fd)
        else:
            taken[fd] += count
            rest = rest[count:]
    write(f"{fd}.taken", taken[fd])


def say_last_words():
    if words := LAST_WORDS.pop(END, b""):
        say(words)


LOCK = os.open("tree.lock", os.O_RDWR | os.O_CREAT, 0o600)
os.set_inheritable(LOCK, True)
fcntl.flock(LOCK, fcntl.LOCK_SH)
note("leader")
note("warden", os.getppid())
write("mark", os.environ.get("ROODA_RUN", ""))
say(b"started\n")
say(b"a warning\n", 2)
"""

ENDING = r"""
write("ready", "yes")
say_last_words()
if END == "stay":
    stay()
os._exit({"clean": 0, "failing": 7}.get(END, 1))
"""

IGNORES = r"""
ignore_signals()
child("child", lambda: child("grandchild"))
wait_for("child.pid", "grandchild.pid")
"""

SETSID = r"""
child("escaped", lambda: child("escaped-child"), apart=True)
wait_for("escaped.pid", "escaped-child.pid")
"""

DAEMON = r"""
first = os.fork()
if first == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    try:
        os.closerange(0, 256)
        note("daemon")
        os.chdir("/")
        while is_on():
            with open(os.path.join(HERE, "beats"), "a") as file:
                file.write("x")
            time.sleep(0.05)
    finally:
        os._exit(1)
os.waitpid(first, 0)
wait_for("daemon.pid")
"""

FORGETS = r"""
UNKNOWN = '''
import os, time
open("unknown.up", "w").write("yes")
end = time.monotonic() + 120
while time.monotonic() < end and not os.path.exists("stop"):
    time.sleep(0.5)
'''
def exec_without_environment():
    os.execve(sys.executable, [sys.executable, "-S", "-c", UNKNOWN], {})
"""

BARE = (
    FORGETS
    + r"""
child("unknown", exec_without_environment, apart=True)
wait_for("unknown.pid", "unknown.up")
"""
)

HOLDS = r"""
child("holder", apart=True)
wait_for("holder.pid")
"""

BOMB = r"""
def bomb():
    ignore_signals()
    born = living = 0
    while is_on():
        while living < 50:
            if os.fork() == 0:
                time.sleep(0.05 + 0.002 * (born % 50))
                os._exit(0)
            born, living = born + 1, living + 1
            if born == 60:
                write("bomb.up", "yes")
        os.wait()
        living -= 1
child("bomb", bomb)
wait_for("bomb.pid", "bomb.up")
"""

COMET = r"""
def comet():
    ignore_signals()
    born = 0
    while is_on():
        if os.fork():
            os._exit(0)
        os.setsid()
        born += 1
        if born == 20:
            write("comet.up", "yes")
child("comet", comet)
wait_for("comet.pid", "comet.up")
"""

CLOSES = r"""
say_last_words()
for fd in range(3):
    os.close(fd)
"""

STOPS = r"""
def wake():
    while state(LEADER) != "T":
        time.sleep(0.002)
    write("ready", "yes")
    if END != "stay":
        os.kill(LEADER, signal.SIGCONT)
os.waitpid(child("stopped", lambda: os.kill(os.getpid(), signal.SIGSTOP)), os.WUNTRACED)
child("waker", wake)
wait_for("waker.pid")
os.kill(LEADER, signal.SIGSTOP)
"""

FLOODS = r"""
def flood(fd):
    os.set_blocking(fd, False)
    say(b"".join(b"%063d\n" % number for number in range(131072)), fd)
"""

REOPENS = r"""
for fd, name in ((1, "stdout"), (2, "stderr")):
    with open(f"/dev/{name}", "w") as reopened:
        reopened.write("again\n")
    taken[fd] += 6
"""

TERMINAL = r"""
import pty
pid, master = pty.fork()
if pid == 0:
    try:
        ignore_signals()
        note("terminal")
        os.write(1, b"in a terminal\n")
        stay()
    finally:
        os._exit(1)
seen = b""
while not seen.endswith(b"\n"):
    seen += os.read(master, 100)
wait_for("terminal.pid")
say(seen)
"""
SEEN = b"in a terminal\r\n"

PLAIN = r"""
child("plain")
wait_for("plain.pid")
"""

SILENT = (
    FORGETS
    + r"""
def close_streams_and_exec():
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    exec_without_environment()
child("unknown", close_streams_and_exec)
wait_for("unknown.pid", "unknown.up")
"""
)

WRITER = (
    FORGETS
    + r"""
first = os.fork()
if first == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    note("unknown")
    exec_without_environment()
os.waitpid(first, 0)
wait_for("unknown.pid", "unknown.up")
"""
)
