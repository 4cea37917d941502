"""`wsl-redis-install.sh` without --prefix, as root and with systemd, as a user runs it.

For real, but where nothing of this machine is changed: in a mount namespace of its own, whose /etc,
/run, /var/lib and /usr/local/lib are thrown away. In systemd's place stands a program that is told
what systemctl is told: it starts the unit's ExecStart as the unit's user, and writes down each
call. A Redis of the distribution's runs beside it all the time.
"""

import base64
import json
import os
import re
import shutil
import subprocess

import pytest

from tests.e2e.gateway_process import ROOT
from tests.redis_server import HOW_TO_ENABLE, RedisServer, free_port

NAME = "library-of-context-redis"
NAMESPACE = ("unshare", "--mount", "--propagation", "private")
THROWN_AWAY = ("/etc", "/run", "/var/lib", "/usr/local/lib")
SYSTEMCTL = r"""#!/usr/bin/env bash
echo "$*" >>"$CALLS"
unit=/etc/systemd/system/library-of-context-redis.service
is_up() { [ -f /run/up ] && kill -0 "$(cat /run/up)" 2>/dev/null; }
stop() { ! is_up || { kill "$(cat /run/up)"; while is_up; do sleep 0.05; done; }; }
start() {
    setpriv --reuid "$(sed -n 's/^User=//p' $unit)" --regid "$(sed -n 's/^Group=//p' $unit)" \
        --clear-groups $(sed -n 's/^ExecStart=//p' $unit) >"$CALLS.redis" 2>&1 &
    echo $! >/run/up
}
case $1 in
    is-active) is_up ;;
    start) start ;;
    restart) stop; start ;;
    disable) stop ;;
esac
"""
STORY = r"""set -euo pipefail
mount -t tmpfs none "$SCRATCH"
for place in $PLACES; do
    over=$SCRATCH$place
    mkdir -p "$over/upper" "$over/work" "$place"
    mount -t overlay -o "lowerdir=$place,upperdir=$over/upper,workdir=$over/work" none "$place"
done
mkdir -p /run/systemd/system /etc/redis
echo "port $THEIRS" >/etc/redis/redis.conf
say() { printf '%s\t' "$1"; shift; "$@" 2>&1 | base64 -w0; echo; }
trap '"$SCRIPT" --uninstall >/dev/null 2>&1 || true' EXIT
say install "$SCRIPT" --port "$PORT"
say again "$SCRIPT"
say status "$SCRIPT" --status
say mode stat -c '%a %U' /etc/$NAME/password
say user id "$NAME"
say info bash -c 'REDISCLI_AUTH=$(cat "/etc/$NAME/password") redis-cli -p "$PORT" INFO'
say owner bash -c 'ps -o user:40= -p "$(cat /run/up)"'
say uninstall "$SCRIPT" --uninstall
say gone bash -c '"$SCRIPT" --status || echo "code $?"; id "$NAME" || true
    find /etc /var/lib /usr/local/lib -name "*$NAME*"'
say theirs cat /etc/redis/redis.conf
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what each step of the story said, and `calls`: all that systemctl was told."""
    folder = tmp_path_factory.mktemp("service")
    if shutil.which("redis-cli") is None:
        pytest.skip(HOW_TO_ENABLE)
    if os.geteuid() or subprocess.run([*NAMESPACE, "true"], check=False).returncode:
        pytest.skip("only root may have a mount namespace of its own")
    programs, scratch = folder / "bin", folder / "scratch"
    programs.mkdir()
    scratch.mkdir()
    (programs / "systemctl").write_text(SYSTEMCTL, encoding="utf-8")
    (programs / "systemctl").chmod(0o755)
    theirs = RedisServer(folder).start()
    theirs.ask("SET", "told", "theirs")
    before = theirs.ask("INFO", "server")["process_id"], theirs.ask("CONFIG", "GET", "*")
    calls = folder / "calls"
    done = subprocess.run(
        [*NAMESPACE, "bash", "-c", STORY],
        env={
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "CALLS": str(calls),
            "LC_ALL": "C",
            "NAME": NAME,
            "PLACES": " ".join(THROWN_AWAY),
            "PORT": str(free_port()),
            "SCRATCH": str(scratch),
            "SCRIPT": str(ROOT / "wsl-redis-install.sh"),
            "THEIRS": str(theirs.port),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    after = theirs.ask("INFO", "server")["process_id"], theirs.ask("CONFIG", "GET", "*")
    value = theirs.ask("GET", "told")
    theirs.kill()
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(line.split("\t") for line in done.stdout.splitlines())
    found = {name: base64.b64decode(words).decode() for name, words in said.items()}
    found["calls"] = calls.read_text(encoding="utf-8")
    found["theirs before and after"] = json.dumps([str(before), str(after), value.decode()])
    return found


def test_it_becomes_a_service_that_systemd_keeps_up(told: dict[str, str]) -> None:
    """Issue 4: service `library-of-context-redis`, for its own user, `--status`."""
    calls = told["calls"].splitlines()
    for call in ("daemon-reload", f"enable --quiet {NAME}", f"start {NAME}"):
        assert call in calls
    assert "kept up   by systemd" in told["status"]
    assert told["owner"].strip() == NAME
    assert told["mode"].strip() == "600 root"
    for line in ("maxmemory_policy:allkeys-lfu", f"maxmemory:{2**30}", "aof_enabled:0"):
        assert line in told["info"].split()
    assert re.search(r"^redis_version:([7-9]|\d\d)\.", told["info"], re.M)


def test_a_second_run_starts_nothing_again_and_tells_the_same(told: dict[str, str]) -> None:
    """Issue 4: idempotent."""
    assert told["calls"].count(f"start {NAME}\n") == 1
    assert told["again"] == told["install"]
    assert re.search(r"^export LIBRARY_OF_CONTEXT_REDIS_URL='redis://:\w{64}@", told["again"], re.M)


def test_uninstalling_takes_service_user_and_files_away(told: dict[str, str]) -> None:
    assert f"disable --now --quiet {NAME}" in told["calls"]
    assert told["gone"].splitlines() == [
        f"{NAME}: not installed",
        "code 4",
        f"id: '{NAME}': no such user",
    ]


def test_the_distributions_own_redis_is_left_alone(told: dict[str, str]) -> None:
    before, after, value = json.loads(told["theirs before and after"])
    assert before == after
    assert value == "theirs"
    assert told["theirs"].startswith("port ")
    units = re.findall(r"\S*redis\S*", told["calls"])
    assert {*units} == {NAME}
