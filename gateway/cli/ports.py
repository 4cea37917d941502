"""Who listens on a port: the difference between "address in use" and knowing what to stop."""

import http.client
import socket
from pathlib import Path

ASK_TIMEOUT_S = 0.5
ANSWER_BYTES_MAX = 1_000_000
"""Of whatever stands there; a gateway's own answer is a thousandth of it."""


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address.

    Raises:
        OSError: it is taken, or not an address of this machine.

    """
    family, _, _, _, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    # Named as TCP, because asyncio's own loop sends small packets at once on such sockets alone:
    # else an answer's body waits 40 ms for the acknowledgement of its head.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            # On Windows, SO_REUSEADDR would let two programs listen on one port.
            found.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError:
        found.close()
        raise
    return found


def origin(host: str, port: int) -> str:
    """Return the address to use from this machine."""
    if host in ("0.0.0.0", "::", "[::]"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host.strip('[]')}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_free(host: str, port: int) -> bool:
    try:
        bound_socket(host, port).close()
    except OSError:
        return False
    return True


def occupant(host: str, port: int) -> str:
    """Return who holds a port, as well as can be told."""
    process = _process_on(port)
    if _is_gateway(host, port):
        return "another gateway of the Library of Context" + (f" ({process})" if process else "")
    return process or "another program"


def _is_gateway(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host.strip("[]"), port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", "/library/status")
        reply = connection.getresponse()
        reply.read(ANSWER_BYTES_MAX)
        return any(name.lower().startswith("x-library-") for name in reply.headers)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _process_on(port: int) -> str | None:
    """Return "NAME, process N" from Linux's /proc; None elsewhere, or if it may not be seen."""
    wanted = f":{port:04X}"
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        rows = [line.split() for line in lines]
        inodes |= {
            f"socket:[{row[9]}]" for row in rows if row[1].endswith(wanted) and row[3] == "0A"
        }
    for link in Path("/proc").glob("[0-9]*/fd/*") if inodes else ():
        try:
            if str(link.readlink()) in inodes:
                pid = link.parts[2]
                name = Path("/proc", pid, "comm").read_text(encoding="utf-8").strip()
                return f"{name}, process {pid}"
        except OSError:
            continue  # The process ended, or is another user's.
    return None
