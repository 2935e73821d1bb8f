# ruff: noqa: PTH207
"""Tries with the kernel: mounts, namespaces, devices, capabilities, keys."""

import ctypes
import fcntl
import glob
import os
import stat
import termios
from pathlib import Path

from support.escapes.common import FACTS, LIBC, MARK, TREE, HeldError, attempt, call, overwrite, run

# -- the kernel --------------------------------------------------------------------------------


@attempt("core pattern")
def _() -> object:
    return overwrite("/proc/sys/kernel/core_pattern")


@attempt("sysrq")
def _() -> object:
    with open("/proc/sysrq-trigger", "w") as file:  # noqa: PTH123
        file.write("?")
    return "written"


@attempt("uevent helper")
def _() -> object:
    return overwrite("/sys/kernel/uevent_helper")


@attempt("mount")
def _() -> object:
    call(LIBC.mount(b"none", str(TREE).encode(), b"tmpfs", 0, None))
    return "mounted"


@attempt("remount read-only parts")
def _() -> object:
    call(LIBC.mount(None, str(TREE / ".git/config").encode(), None, 32 | 4096, None))
    return overwrite(TREE / ".git/config")


@attempt("unmount a protection")
def _() -> object:
    call(LIBC.umount2(str(TREE / ".git/config").encode(), 2))
    return overwrite(TREE / ".git/config")


@attempt("nested namespace")
def _() -> object:
    script = f"umount -l {TREE}/.git/config; echo {MARK} >> {TREE}/.git/config"
    return run("unshare", "-Urm", "sh", "-ec", script)


@attempt("any user namespace")
def _() -> object:
    call(LIBC.unshare(0x10000000))
    return "made one"


@attempt("control group")
def _() -> object:
    for path in glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True):
        return overwrite(path)
    raise HeldError("none")


@attempt("device file")
def _() -> object:
    os.mknod(TREE / "device", 0o666 | stat.S_IFBLK, os.makedev(8, 0))
    return "made"


@attempt("disks")
def _() -> object:
    for path in glob.glob("/dev/sd*") + glob.glob("/dev/vd*") + glob.glob("/dev/nvme*"):
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(10)
    raise HeldError("none")


@attempt("kernel log")
def _() -> object:
    with open("/dev/kmsg") as file:  # noqa: PTH123
        return file.readline()


@attempt("open_by_handle_at")
def _() -> object:
    handle = ctypes.create_string_buffer(128 + 8)
    ctypes.cast(handle, ctypes.POINTER(ctypes.c_uint))[0] = 128
    mount = ctypes.c_int()
    call(LIBC.name_to_handle_at(-100, str(TREE).encode(), handle, ctypes.byref(mount), 0))
    folder = os.open(TREE, os.O_RDONLY)
    try:
        call(LIBC.open_by_handle_at(folder, handle, os.O_RDONLY))
    finally:
        os.close(folder)
    return "opened"


@attempt("chroot")
def _() -> object:
    os.chroot(TREE)
    return "done"


@attempt("become root")
def _() -> object:
    if os.getuid() == 0:
        os.chown(TREE / "facts.json", 12345, 12345)
        return "changed the owner"
    os.setuid(0)
    return "root"


@attempt("capabilities")
def _() -> object:
    lines = Path("/proc/self/status").read_text().splitlines()
    values = {line.split()[0]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}
    if not any(values.values()):
        raise HeldError(str(values))
    return values


@attempt("type into the terminal")
def _() -> object:
    fd = os.open("/dev/tty", os.O_RDWR)
    fcntl.ioctl(fd, termios.TIOCSTI, b"x")
    return "typed"


@attempt("session keyring")
def _() -> object:
    name = FACTS["key"].encode()
    key = call(LIBC.syscall(FACTS["keyctl"], 10, ctypes.c_int(-3), b"user", name, 0))
    room = ctypes.create_string_buffer(200)
    call(LIBC.syscall(FACTS["keyctl"], 11, key, room, 200))
    return room.value.decode()


@attempt("shared memory")
def _() -> object:
    return (Path("/dev/shm") / FACTS["shared"]).read_text()
