"""Run a command that may do less: `python confined.py offline|powerless COMMAND...`.

offline    Any attempt to connect to anything kills the process that makes it, whichever library
           or thread that is: the kernel looks at every system call.
powerless  Permissions of files hold for root, too.
"""

import ctypes
import os
import platform
import struct
import sys

_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 22, 24, 38
_SECCOMP_MODE_FILTER = 2
_KILL_PROCESS, _ALLOW = 0x80000000, 0x7FFF0000
CONNECT = {"x86_64": 42, "aarch64": 203}
"""The number of the system call, by architecture."""


def offline() -> None:
    """Forbid to connect, to this process and to those that it starts."""
    instructions = [
        (0x20, 0, 0, 0),  # load the number of the system call
        (0x15, 0, 1, CONNECT[platform.machine()]),  # unless it is connect, skip one
        (0x06, 0, 0, _KILL_PROCESS),
        (0x06, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in instructions))
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.create_string_buffer(program))


def powerless() -> None:
    """Return up what lets root write where nobody may."""
    if os.geteuid() == 0:
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            _prctl(_PR_CAPBSET_DROP, capability)


def _prctl(option: int, value: object, more: object = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    value = ctypes.c_ulong(value) if isinstance(value, int) else value
    if libc.prctl(option, value, more, ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    {"offline": offline, "powerless": powerless}[sys.argv[1]]()
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - the command of a test
