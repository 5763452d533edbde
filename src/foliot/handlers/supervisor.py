"""A keeper: a small process that starts one program for a worker, and lets nothing of it live on when it must end.

What the program starts stays below the keeper, also what goes to the background in a session of its own: the kernel gives
orphans to the nearest keeper above them. Its orders come on a socket, marshalled behind their length; then `T` asks the program to
end, `G` its whole group, and the end of the line, which is also the end of the worker, ends everything. What became of the program
goes back as a line, a literal of Python.

It must start in a blink, and each program has one. So it is imported by an interpreter without `site`, compiled once, and asks for
modules that are part of the interpreter or small: `enum`, which `signal` brings along, `json`, `contextlib` and `ctypes` would each cost more
than all that is done here.
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

TYPE_CHECKING = False  # `typing` is not small
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SET_PDEATHSIG, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 1, 36, 38  # of prctl
LOOK_EVERY = 1.0  # seconds between counts of the family
AGAIN = 0.02  # seconds until those who were killed are looked for again
GIVE_UP = 5.0  # seconds after which somebody cannot be killed at all, such as who waits for a dead disk


def main() -> None:
    line = int(sys.argv[1])
    os.set_inheritable(line, False)
    _prctl(SET_CHILD_SUBREAPER, 1)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # they are for the program; our own end is that of the line
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    if orders := _orders(line):
        told = Supervisor(marshal.loads(orders), line, woken).keep()  # noqa: S302  # by our own worker
        try:
            os.write(line, f"{told!r}\n".encode())
        except OSError:  # nobody listens any more
            return


class Supervisor:
    def __init__(self, orders: dict[str, Any], line: int, woken: int) -> None:
        self._orders = orders
        self._line = line
        self._woken = woken
        self._program = 0
        self._code: int | None = None  # below zero: the signal that ended it
        self._is_crowded = False

    def keep(self) -> dict[str, Any]:
        try:
            self._program = _started(self._orders)
        except OSError as error:
            return {"not_started": f"{error.strerror}: {error.filename}"}
        self._watch()
        all_gone = self._end_all()
        return {"code": self._code, "crowded": self._is_crowded, "all_gone": all_gone}

    def _watch(self) -> None:
        """Until the program has ended, or must."""
        most, look_at, kill_at = self._orders["processes"], monotonic() + LOOK_EVERY, None
        places = select.poll()
        places.register(self._line, select.POLLIN)
        places.register(self._woken, select.POLLIN)
        while self._code is None:
            now = monotonic()
            if kill_at is not None and now >= kill_at:
                return
            if most and now >= look_at:
                look_at = now + LOOK_EVERY
                if len(descendants(os.getpid(), most)) > most:
                    self._is_crowded = True
                    return
            until = kill_at if kill_at is not None else look_at if most else None
            ready = places.poll(None if until is None else max(0.0, until - now) * 1000)
            self._reap()
            if self._line in (place for place, _ in ready):
                asked = _read(self._line)
                if not asked:
                    return
                kill_at = kill_at or monotonic() + self._orders["stops_within"]
                _send(os.killpg if asked == b"G" else os.kill, self._program, signal.SIGTERM)

    def _end_all(self) -> bool:
        """Whoever has no children has no descendants either, since orphans become ours."""
        give_up_at = monotonic() + GIVE_UP
        while self._reap():
            if monotonic() > give_up_at:
                return False
            for pid in descendants(os.getpid()):
                _send(os.kill, pid, signal.SIGKILL)
            select.select([self._woken], [], [], AGAIN)
        return True

    def _reap(self) -> bool:
        """Whether any child is left."""
        _drain(self._woken)
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._program:
                    self._code = os.waitstatus_to_exitcode(found[1])
        except ChildProcessError:
            return False
        return True


def descendants(root: int, enough: int | None = None) -> list[int]:
    """Parents before their children; no more than a little over `enough`."""
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
    except OSError:  # it is gone
        return found
    return found


def _started(orders: dict[str, Any]) -> int:
    """The program's process; OSError where it cannot be started, with what was not found."""
    failed, fail = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            _become(orders)
        except OSError as error:
            os.write(fail, marshal.dumps((error.errno, error.strerror, str(error.filename))))
        except Exception as error:  # noqa: BLE001  # whatever it is, it must be told
            os.write(fail, marshal.dumps((0, str(error), orders["argv"][0])))
        finally:
            os._exit(127)
    os.close(fail)
    _let_go_of_its_pipes()
    with open(failed, "rb") as reader:
        problem = reader.read()  # nothing, once it is another program: the pipe closes itself then
    if problem:
        os.waitpid(pid, 0)
        raise OSError(*marshal.loads(problem))  # noqa: S302  # by our own child
    return pid


def _become(orders: dict[str, Any]) -> None:
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
    _bound(resource.RLIMIT_AS, orders["memory"])
    _bound(resource.RLIMIT_FSIZE, orders["file_size"])
    _bound(resource.RLIMIT_NPROC, orders["user_processes"])
    if orders["umask"] is not None:
        os.umask(orders["umask"])
    if orders["user"] is not None:
        _change_to(*orders["user"])
    _prctl(SET_PDEATHSIG, signal.SIGKILL)  # after that: whoever changes loses it
    if orders["cwd"] is not None:
        os.chdir(orders["cwd"])
    _exec(orders["argv"], dict(os.environ) if orders["env"] is None else orders["env"])


def _exec(argv: list[str], env: dict[str, str]) -> None:
    """As `os.execvpe` does, which imports a module on the way: our library need not be there for another user to read."""
    name = argv[0]
    folders = [""] if "/" in name else [f"{each}/" for each in env.get("PATH", os.defpath).split(":")]
    problem: OSError | None = None
    for folder in folders:
        try:
            os.execve(folder + name, argv, env)
        except (FileNotFoundError, NotADirectoryError) as error:
            problem = problem or error
        except OSError as error:  # it is there, and this is what people want to know
            problem = error
    assert problem is not None
    raise OSError(problem.errno, problem.strerror, name)


def _bound(what: int, wanted: int | None) -> None:
    if wanted:
        _, most = resource.getrlimit(what)
        least = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(what, (least, least))


def _change_to(uid: int, gid: int, groups: tuple[int, ...]) -> None:
    """Another user for good: programs that lend their owner's rights lend nothing from here on."""
    for each in (0, 1, 2):
        os.fchown(each, uid, gid)  # or it could not open /dev/stderr, which is its own
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _prctl(SET_NO_NEW_PRIVS, 1)


def _let_go_of_its_pipes() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    os.close(nowhere)


def _orders(line: int) -> bytes:
    """All of them, or nothing. What comes after them is not read yet: that is for later."""
    found, wanted = b"", 4
    while len(found) < wanted:
        piece = os.read(line, wanted - len(found))
        if not piece:
            return b""
        found += piece
        if len(found) == wanted == 4:
            found, wanted = b"", int.from_bytes(found, "big")
    return found


def _read(line: int) -> bytes:
    try:
        return os.read(line, 1)
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
    """As `ctypes` would, which takes longer to import than everything else here."""
    ourselves = _ctypes.dlopen(None, 2)  # type: ignore[arg-type]  # as `ctypes.CDLL(None)` does
    address = _ctypes.dlsym(ourselves, "prctl")
    _ctypes.call_function(address, (what, value, 0, 0, 0))
