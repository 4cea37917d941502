"""`scripts/clients`: every client in every protocol it speaks, and the table of what passed."""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.e2e.clients.conformance import RUN, STEPS, conform, started_by_run
from tests.e2e.clients.environments import Client, install, listed_clients
from tests.e2e.clients.model import ScriptedModel

README = Path(__file__).resolve().parents[3] / "README.md"
BEGIN, END = "<!-- clients -->", "<!-- /clients -->"
Row = tuple[Client, str, dict[str, str]]


def main() -> int:
    clients = listed_clients()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a client; none: all of them")
    parser.add_argument("--list", action="store_true", help="only list the clients")
    parser.add_argument("--write", action="store_true", help="renew these rows in the README")
    given = parser.parse_args()
    if given.list:
        for client in clients.values():
            sys.stdout.write(f"{client.name:<18} {client.version:<10} {client.protocols}\n")
        return 0
    unknown = {*given.names} - {*clients}
    if unknown:
        parser.error(f"no client is called {', '.join(sorted(unknown))}; --list shows them")
    rows = run([clients[name] for name in given.names or clients])
    if given.write:
        text = README.read_text(encoding="utf-8")
        README.write_text(renewed(text, rows, clients), encoding="utf-8")
    return 1 if any(problem for _, _, result in rows for problem in result.values()) else 0


def run(clients: list[Client]) -> list[Row]:
    """Run each client in each of its protocols, and say how each went."""
    rows: list[Row] = []
    model = ScriptedModel()
    model.start()
    try:
        for client in clients:
            for protocol in client.protocols:
                result = _result(client, protocol, model)
                rows.append((client, protocol, result))
                for step, problem in result.items():
                    said = f"x  {problem}" if problem else "ok"
                    sys.stdout.write(f"{client.name} {protocol} {step}: {said}\n")
                    sys.stdout.flush()
    finally:
        model.stop()
    return rows


def _result(client: Client, protocol: str, model: ScriptedModel) -> dict[str, str]:
    try:
        install(client)
    except (subprocess.SubprocessError, OSError) as error:
        return dict.fromkeys(client.steps(STEPS), f"it could not be installed: {error}")
    result = conform(client, protocol, model)
    if protocol in client.run:
        result[RUN] = started_by_run(client, protocol, model)
    return result


def renewed(text: str, rows: list[Row], clients: dict[str, Client]) -> str:
    """Return the README with these rows in its table; rows of clients that were not run stay, of
    those that are no longer listed go."""
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    lines = {_key(line): line for line in old.strip().splitlines()}
    for client, protocol, result in rows:
        cells = [client.name, client.version, protocol]
        cells += [_cell(result.get(step)) for step in (*STEPS, RUN)]
        lines[client.name, protocol] = f"| {' | '.join(cells)} |"
    head = ["client", "version", "protocol", *STEPS, RUN]
    wanted = [(one.name, protocol) for one in clients.values() for protocol in one.protocols]
    table = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
    table += [lines[key] for key in wanted if key in lines]
    return "\n".join([f"{before}{BEGIN}", *table, f"{END}{after}"])


def _key(line: str) -> tuple[str, str]:
    """Return which client and protocol a row is of."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return (cells[0], cells[2]) if len(cells) > 2 else ("", "")


def _cell(problem: str | None) -> str:
    if problem is None:
        return "-"
    return "fails" if problem else "passes"


if __name__ == "__main__":
    sys.exit(main())
