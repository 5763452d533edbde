"""The supervisor: a small process that starts one program for a worker, and lets no process of it outlive its end.

Everything that the program starts stays below the supervisor, also a daemon in a session of its own: the kernel gives orphans to the
nearest subreaper above them. The program comes on a socket, marshalled behind its length; then `T` sends SIGTERM to the program, `G` to
its whole group, and the end of the socket, which is also the end of the worker, kills everything. The exit goes back as one line, a
literal of Python.

Each program has a supervisor of its own, so it must start fast: an interpreter without `site` imports it, compiled once, and it uses
modules that are part of the interpreter or small. `enum`, which `signal` imports, `json`, `contextlib` and `ctypes` would each cost
more than everything done here.

Why: docs/decisions/303-programs-run-under-a-supervisor.md
"""

from __future__ import annotations

import _ctypes
import _signal as signal  # type: ignore[import-not-found]  # `signal` itself without its enumerations
import marshal
import os
import resource
import select
import sys
from time import monotonic

TYPE_CHECKING = False  # `typing` is a large import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SET_PDEATHSIG, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 1, 36, 38  # of prctl
COUNT_EVERY = 1.0  # seconds between counts of the descendants
KILL_AGAIN = 0.02  # seconds until killed processes are counted again
GIVE_UP = 5.0  # seconds after which a process cannot be killed at all, such as one that waits for a dead disk


def main() -> None:
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    _prctl(SET_CHILD_SUBREAPER, 1)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # they are for the program; the supervisor ends with the socket
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    if received := _receive(control):
        report = Supervisor(marshal.loads(received), control, woken).run()  # noqa: S302  # from our own worker
        try:
            os.write(control, f"{report!r}\n".encode())
        except OSError:  # the worker is gone
            return


class Supervisor:
    def __init__(self, program: dict[str, Any], control: int, woken: int) -> None:
        self._program = program
        self._control = control
        self._woken = woken
        self._pid = 0
        self._code: int | None = None  # negative is the signal that ended it
        self._is_crowded = False

    def run(self) -> dict[str, Any]:
        """Run the program to its end and return the report for the worker."""
        try:
            self._pid = _start(self._program)
        except OSError as error:
            return {"not_started": f"{error.strerror}: {error.filename}"}
        self._watch()
        all_gone = self._end_all()
        return {"code": self._code, "crowded": self._is_crowded, "all_gone": all_gone}

    def _watch(self) -> None:
        """Wait until the program has ended, or must."""
        most, count_at, kill_at = self._program["processes"], monotonic() + COUNT_EVERY, None
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while self._code is None:
            now = monotonic()
            if kill_at is not None and now >= kill_at:
                return
            if most and now >= count_at:
                count_at = now + COUNT_EVERY
                if len(descendants(os.getpid(), most)) > most:
                    self._is_crowded = True
                    return
            until = kill_at if kill_at is not None else count_at if most else None
            ready = poll.poll(None if until is None else max(0.0, until - now) * 1000)
            self._reap()
            if self._control in (descriptor for descriptor, _ in ready):
                command = _read(self._control)
                if not command:
                    return
                kill_at = kill_at or monotonic() + self._program["stops_within"]
                _send(os.killpg if command == b"G" else os.kill, self._pid, signal.SIGTERM)

    def _end_all(self) -> bool:
        """Kill all descendants. Without children there are none, since orphans become children of this process."""
        give_up_at = monotonic() + GIVE_UP
        while self._reap():
            if monotonic() > give_up_at:
                return False
            for pid in descendants(os.getpid()):
                _send(os.kill, pid, signal.SIGKILL)
            select.select([self._woken], [], [], KILL_AGAIN)
        return True

    def _reap(self) -> bool:
        """Reap children and return whether any is left."""
        _drain(self._woken)
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._pid:
                    self._code = os.waitstatus_to_exitcode(found[1])
        except ChildProcessError:
            return False
        return True


def descendants(root: int, enough: int | None = None) -> list[int]:
    """Return descendants, parents before their children, and few more than `enough`."""
    found: list[int] = []
    new = [root]
    while new and (enough is None or len(found) <= enough):
        new = [child for parent in new for child in _children(parent)]
        found += new
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as children:
                found += map(int, children.read().split())
    except OSError:  # the process is gone
        return found
    return found


def _start(program: dict[str, Any]) -> int:
    """Start the program and return its pid; raise OSError with the missing file where it cannot be started."""
    failed, fail = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            _exec_program(program)
        except OSError as error:
            os.write(fail, marshal.dumps((error.errno, error.strerror, str(error.filename))))
        except Exception as error:  # noqa: BLE001  # the worker must learn of any failure
            os.write(fail, marshal.dumps((0, str(error), program["argv"][0])))
        finally:
            os._exit(127)
    os.close(fail)
    _release_pipes()
    with open(failed, "rb") as reader:
        problem = reader.read()  # empty once exec succeeded, which closes the pipe
    if problem:
        os.waitpid(pid, 0)
        raise OSError(*marshal.loads(problem))  # noqa: S302  # from our own child
    return pid


def _exec_program(program: dict[str, Any]) -> None:
    os.setsid()
    for each in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGPIPE,
        signal.SIGXFSZ,
        signal.SIGCHLD,
    ):
        signal.signal(each, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_AS, program["memory"])
    _limit(resource.RLIMIT_FSIZE, program["file_size"])
    _limit(resource.RLIMIT_NPROC, program["user_processes"])
    if program["umask"] is not None:
        os.umask(program["umask"])
    if program["user"] is not None:
        _change_to(*program["user"])
    _prctl(SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
    if program["cwd"] is not None:
        os.chdir(program["cwd"])
    _exec(program["argv"], dict(os.environ) if program["env"] is None else program["env"])


def _exec(argv: list[str], env: dict[str, str]) -> None:
    """Do what `os.execvpe` does without its imports: another user may not be able to read our library."""
    name = argv[0]
    folders = [""] if "/" in name else [f"{each}/" for each in env.get("PATH", os.defpath).split(":")]
    problem: OSError | None = None
    for folder in folders:
        try:
            os.execve(folder + name, argv, env)
        except (FileNotFoundError, NotADirectoryError) as error:
            problem = problem or error
        except OSError as error:  # the file exists: this is the error that people need
            problem = error
    assert problem is not None
    raise OSError(problem.errno, problem.strerror, name)


def _limit(resource_id: int, most: int | None) -> None:
    if most:
        _, hard = resource.getrlimit(resource_id)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource_id, (limit, limit))


def _change_to(uid: int, gid: int, groups: tuple[int, ...]) -> None:
    """Become another user for good: setuid programs give no rights from here on."""
    for each in (0, 1, 2):
        os.fchown(each, uid, gid)  # or it could not open /dev/stderr
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _prctl(SET_NO_NEW_PRIVS, 1)


def _release_pipes() -> None:
    """Close the program's pipes here: their readers must see the end when the program exits."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    os.close(nowhere)


def _receive(control: int) -> bytes:
    """Return the whole program, or nothing. Commands behind it stay unread."""
    found, wanted = b"", 4
    while len(found) < wanted:
        piece = os.read(control, wanted - len(found))
        if not piece:
            return b""
        found += piece
        if len(found) == wanted == 4:
            found, wanted = b"", int.from_bytes(found, "big")
    return found


def _read(control: int) -> bytes:
    try:
        return os.read(control, 1)
    except ConnectionError:
        return b""


def _drain(woken: int) -> None:
    try:
        while os.read(woken, 4096):
            pass
    except BlockingIOError:
        return


def _send(send: Callable[[int, int], None], pid: int, number: int) -> None:
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _prctl(what: int, value: int) -> None:
    """Call prctl without `ctypes`, whose import takes longer than everything else here."""
    program = _ctypes.dlopen(None, 2)  # type: ignore[arg-type]  # as `ctypes.CDLL(None)` does
    address = _ctypes.dlsym(program, "prctl")
    _ctypes.call_function(address, (what, value, 0, 0, 0))
