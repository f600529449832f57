"""A warm process: it imports once what the chapters import, and their kernels are forked from it.

A kernel that imports torch and matplotlib spends seconds on it before it computes anything. A fork has them at once.

1. The build runs this file as a script, with one end of a pair of sockets and the names of the modules.
2. Where jupyter_client would start a kernel's process, ``Warm.launch`` sends what it would start over the other end.
   Sphinx's workers, being forks of the build, hold that end too.
3. The script forks. The child becomes what was asked for, and says its process id.
4. When nobody holds the other end any more, because the build has ended or was killed, the script ends. The kernels
   see that their parent is gone, and end too. There is no file that could be left behind.

This needs Linux. Elsewhere, or if the script does not answer, the kernels start as ever: slower, with equal results.
As a script this file must import nothing of the book, nor of bookkit: a kernel shall find only what it asked for.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys

KERNEL = "ipykernel.kernelapp"
LONGEST = 2**20  # bytes of a request; Linux sends no longer ones


def possible() -> bool:
    """Whether this system can tell when a process that is not our child ends."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # not Linux, an old one, or a sandbox
        return False
    return True


class Warm:
    """The build's side: the warm process, from which jupyter_client now gets its kernels."""

    def __init__(self, modules: list[str]):
        from jupyter_client.provisioning import local_provisioner  # not above: the script has no use for it

        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, str(theirs.fileno()), *modules]
        with theirs:  # a session of its own: Ctrl-C in the terminal is for the build
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self.launch_cold = local_provisioner.launch_kernel
        local_provisioner.launch_kernel = self.launch

    def launch(self, command: list[str], **options) -> "Kernel | subprocess.Popen":
        """What jupyter_client calls instead of its own ``launch_kernel``."""
        if command[:2] != [sys.executable, "-m"]:  # another language, or another Python
            return self.launch_cold(command, **options)
        mine, theirs = socket.socketpair()
        request = {"command": command, "folder": options["cwd"], "environment": options["env"]}
        with mine, contextlib.suppress(OSError):
            with theirs:
                socket.send_fds(self.requests, [json.dumps(request).encode()], [theirs.fileno()])
            if answer := mine.recv(100):  # nothing, if it ended
                return Kernel(int(answer))
        return self.launch_cold(command, **options)

    def stop(self) -> None:
        """End the warm process; whoever starts a kernel after this gets an ordinary one."""
        self.requests.close()
        self.process.terminate()
        self.process.wait()


class Kernel:
    """As much of ``subprocess.Popen`` as jupyter_client uses, for a process that is not our child."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid = pid
        self.handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """None while it runs. How it ended only its parent knows, and nobody asks."""
        ended, _, _ = select.select([self.handle], [], [], 0)
        return 0 if ended else None

    wait = poll  # only called when it has ended

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def __del__(self):
        os.close(self.handle)


# -- The script ----------------------------------------------------------------------------------


def preload(modules: list[str]) -> None:
    """Import what the kernels will need. A fork has one thread only, so no module may have started another."""
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # ipykernel looks at it when it is imported
    for name in [KERNEL, *modules]:
        importlib.import_module(name)
    gc.freeze()  # else each kernel visits all these objects when it collects garbage, and when it ends: a second
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit("bookkit_preload: one of these modules starts a thread, which a fork would lack: " + " ".join(modules))


def fork_on_request(requests: socket.socket) -> tuple[dict, socket.socket]:
    """Return in every child, with what it shall become and where to say that it is there."""
    signal.signal(signal.SIGCHLD, bury)
    while True:
        request, handles, _, _ = socket.recv_fds(requests, LONGEST, 1)
        if not request:
            sys.exit()
        answer = socket.socket(fileno=handles[0])
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return json.loads(request), answer
        answer.close()


def bury(*_) -> None:
    """Children that ended leave the table of processes, and their time counts as that of the build."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def become(request: dict, answer: socket.socket) -> None:
    """Do what a new process would: ``python -m module arguments`` in its folder and environment."""
    os.setsid()  # jupyter_client sends signals to the whole group
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"], JPY_PARENT_PID=str(os.getppid()))
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # else all kernels draw the same numbers; `random` sees to it itself
    with answer:
        answer.sendall(str(os.getpid()).encode())
    _, _, module, *sys.argv[1:] = request["command"]
    sys.path.insert(0, os.getcwd())
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    # A kernel finds no module of this folder by a bare name such as `compare`.
    sys.path[:] = [folder for folder in sys.path if folder != os.path.dirname(__file__)]
    preload(sys.argv[2:])
    become(*fork_on_request(socket.socket(fileno=int(sys.argv[1]))))
