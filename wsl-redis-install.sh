#!/usr/bin/env bash
# A Redis of its own for the Library of Context, inside Ubuntu or Debian, in WSL or not.
#
#   sudo ./wsl-redis-install.sh              install or mend it, start it, print the line to paste
#   sudo ./wsl-redis-install.sh --print-env  print the line again: eval "$(... --print-env)"
#   sudo ./wsl-redis-install.sh --status     how it is; code 0 running, 3 stopped, 4 not installed
#   sudo ./wsl-redis-install.sh --uninstall  stop it and remove what was made here
#
#   --port N       listen on 127.0.0.1:N (6380)
#   --prefix DIR   everything below DIR, as the user who asks, without systemd and without root
#
# It is the service `library-of-context-redis`: a random password, 1 GB at most, nothing on disk.
# Where systemd is off a small loop in this script keeps it running until the machine stops; run the
# script again then. The distribution's own Redis is neither touched nor needed: only its binary is.
set -euo pipefail
export LC_ALL=C

readonly NAME=library-of-context-redis
readonly HOST=127.0.0.1
readonly MEMORY=1gb
readonly VERSION_MIN=7
readonly START_TIMEOUT_S=10
# What a cache never needs and an intruder would want. SIGTERM stops the server, a restart empties it.
readonly DISABLED="ACL BGREWRITEAOF BGSAVE CLUSTER CONFIG DEBUG FAILOVER FLUSHALL FLUSHDB KEYS \
MIGRATE MODULE MONITOR PSYNC REPLICAOF RESTORE SAVE SHUTDOWN SLAVEOF SWAPDB SYNC"

PORT=""
PREFIX=""
ACTION=install

die() { echo "$NAME: $*" >&2; exit 1; }
say() { echo "$NAME: $*" >&2; }

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"; }

parse() {
    while [ $# -gt 0 ]; do
        case $1 in
            --status) ACTION=status ;;
            --uninstall) ACTION=uninstall ;;
            --print-env) ACTION=print_env ;;
            --supervise) ACTION=supervise ;;
            --port) [ $# -ge 2 ] || die "--port needs a number"; PORT=$2; shift ;;
            --prefix) [ $# -ge 2 ] || die "--prefix needs a folder"; PREFIX=$2; shift ;;
            -h | --help) usage; exit 0 ;;
            *) die "unknown option $1; --help lists them" ;;
        esac
        shift
    done
    case $PORT in *[!0-9]*) die "--port needs a number, not $PORT" ;; esac
    if [ -n "$PREFIX" ]; then
        case $PREFIX in *[[:space:]\"\'\\]*) die "--prefix may hold no blank, quote or backslash" ;; esac
        case $PREFIX in /*) ;; *) PREFIX=$PWD/$PREFIX ;; esac
    fi
    ETC=$PREFIX/etc/$NAME
    STATE=$PREFIX/var/lib/$NAME
    BIN=$PREFIX/usr/local/lib/$NAME
    UNIT=$PREFIX/etc/systemd/system/$NAME.service
    SECRET=$ETC/password
    CONF=$ETC/redis.conf
    LOG=$STATE/redis.log
    PIDFILE=$STATE/supervisor.pid
    LOCK=$STATE/supervisor.lock
}

# -- what is there ---------------------------------------------------------------------------------
has_systemd() { [ -z "$PREFIX" ] && [ -d /run/systemd/system ]; }
is_installed() { [ -f "$SECRET" ] && [ -f "$CONF" ]; }
configured_port() { sed -n 's/^port //p' "$CONF"; }

# Ask our server; the password goes through the environment, where other users cannot read it.
ask() {
    REDISCLI_AUTH=$(cat "$SECRET") timeout 5 redis-cli --no-auth-warning \
        -h "$HOST" -p "$(configured_port)" "$@" 2>/dev/null
}
answers() { [ "$(ask PING || true)" = PONG ]; }
info() { ask INFO | tr -d '\r' | sed -n "s/^$1://p"; }

# The lock is the supervisor's for as long as it lives, so its number is never another process's.
is_supervised() {
    [ -f "$LOCK" ] && ! flock --nonblock --shared "$LOCK" true
}

need_root() { [ -n "$PREFIX" ] || [ "$(id -u)" = 0 ] || die "run it with sudo"; }

# -- the binary ------------------------------------------------------------------------------------
major() { "$1" --version 2>/dev/null | sed -n 's/.* v=\([0-9]*\)\..*/\1/p'; }

# The package redis-tools brings redis-server too, under the name redis-check-rdb: the program looks
# at the name it is called by. So nothing has to be installed that begins a second Redis on 6379.
find_server() {
    command -v redis-server && return
    local twin
    twin=$(command -v redis-check-rdb) || return 1
    mkdir -p "$BIN"
    ln -sfn "$(readlink -f "$twin")" "$BIN/redis-server"
    [ -n "$(major "$BIN/redis-server")" ] && echo "$BIN/redis-server"
}

get_server() {
    if ! command -v redis-cli >/dev/null || ! SERVER=$(find_server); then
        command -v apt-get >/dev/null || die "there is no apt-get; install Redis $VERSION_MIN or later"
        [ "$(id -u)" = 0 ] || die "redis-tools is missing: sudo apt-get install redis-tools"
        say "installing redis-tools"
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-tools >&2
        SERVER=$(find_server) || die "redis-tools brought no server: sudo apt-get install redis-server"
    fi
    local found
    found=$(major "$SERVER")
    [ "${found:-0}" -ge "$VERSION_MIN" ] || die "Redis $VERSION_MIN or later is needed, $SERVER is" \
        "${found:-of unknown version}: use Debian 12, Ubuntu 24.04 or later, or the packages of redis.io"
}

# -- files -----------------------------------------------------------------------------------------
# Write standard input to a file in one step; code 0 if that changed it.
put() {
    local path=$1 mode=$2 draft
    draft=$(mktemp "$path.XXXXXX")
    cat >"$draft"
    chmod "$mode" "$draft"
    if [ -f "$path" ] && cmp -s "$draft" "$path"; then
        rm -f "$draft"
        chmod "$mode" "$path"
        return 1
    fi
    mv -f "$draft" "$path"
}

conf() {
    local command
    cat <<CONF
# Made by wsl-redis-install.sh, which writes it anew when it is run again.
bind $HOST
port $PORT
protected-mode yes
user default reset on #$(printf %s "$(cat "$SECRET")" | sha256sum | cut -d' ' -f1) ~* &* +@all
maxclients 128
tcp-keepalive 60
databases 1
maxmemory $MEMORY
maxmemory-policy allkeys-lfu
maxmemory-clients 10%
save ""
appendonly no
dir $STATE
daemonize no
lazyfree-lazy-eviction yes
lazyfree-lazy-expire yes
CONF
    for command in $DISABLED; do echo "rename-command $command \"\""; done
}

unit() {
    cat <<UNIT
[Unit]
Description=Redis for the Library of Context
After=network.target

[Service]
Type=notify
ExecStart=$SERVER $CONF --supervised systemd
User=$NAME
Group=$NAME
Restart=always
RestartSec=1
StateDirectory=$NAME
StateDirectoryMode=0700
UMask=0077
LimitNOFILE=1024
TasksMax=64
OOMScoreAdjust=500
CapabilityBoundingSet=
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
PrivateUsers=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
IPAddressDeny=any
IPAddressAllow=localhost
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged

[Install]
WantedBy=multi-user.target
UNIT
}

# -- running ---------------------------------------------------------------------------------------
is_taken() { (exec 3<>"/dev/tcp/$HOST/$1") 2>/dev/null; }

wait_until_it_answers() {
    local deadline=$((SECONDS + START_TIMEOUT_S))
    until answers; do
        if [ "$SECONDS" -ge "$deadline" ]; then
            [ ! -f "$LOG" ] || tail -n 5 "$LOG" >&2
            die "it does not answer on $HOST:$PORT"
        fi
        sleep 0.1
    done
}

start_plain() {
    is_taken "$PORT" && die "$HOST:$PORT is taken by another program: choose another --port"
    local arguments=(--supervise --port "$PORT")
    [ -z "$PREFIX" ] || arguments+=(--prefix "$PREFIX")
    setsid --fork bash "$0" "${arguments[@]}" </dev/null >/dev/null 2>&1
}

# Keep the server running. Started by start_plain, in the background.
supervise() {
    exec 9>"$LOCK"
    flock --nonblock 9 || exit 0
    echo $$ >"$PIDFILE"
    local child="" delay_s=1 began
    trap 'trap - TERM; [ -z "$child" ] || { kill "$child"; wait "$child"; } 2>/dev/null; exit 0' TERM
    SERVER=$(find_server)
    # When this loop is killed the server goes too: the next start finds the port free.
    local as=(setpriv --pdeathsig TERM)
    [ -n "$PREFIX" ] || as+=(--reuid "$NAME" --regid "$NAME" --clear-groups --no-new-privs)
    while :; do
        began=$SECONDS
        # Empty at each start: nothing is on disk, and so is no old log.
        "${as[@]}" "$SERVER" "$CONF" 9>&- >"$LOG" 2>&1 &
        child=$!
        wait "$child" || true
        child=""
        [ $((SECONDS - began)) -lt 60 ] || delay_s=1
        sleep "$delay_s" 9>&- & wait $! || true
        delay_s=$((delay_s < 30 ? delay_s * 2 : 30))
    done
}

stop_plain() {
    is_supervised || return 0
    kill "$(cat "$PIDFILE")"
    local deadline=$((SECONDS + START_TIMEOUT_S))
    while is_supervised; do
        [ "$SECONDS" -lt "$deadline" ] || die "the supervisor $(cat "$PIDFILE") does not end"
        sleep 0.1
    done
}

# -- what can be asked -----------------------------------------------------------------------------
make_files() {
    if [ -z "$PREFIX" ] && ! id "$NAME" >/dev/null 2>&1; then
        useradd --system --user-group --no-create-home --home-dir "$STATE" \
            --shell /usr/sbin/nologin "$NAME"
    fi
    mkdir -p "$ETC" "$STATE" "$(dirname "$UNIT")"
    chmod 0755 "$ETC"
    chmod 0700 "$STATE"
    [ -n "$PREFIX" ] || chown "$NAME:$NAME" "$STATE"
    if ! [ -s "$SECRET" ]; then
        head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' | (umask 077; put "$SECRET" 0600)
    fi
    chmod 0600 "$SECRET"
    IS_CHANGED=no
    # It holds the password's digest only, and that of 256 random bits.
    if conf | put "$CONF" 0644; then IS_CHANGED=yes; fi
    if unit | put "$UNIT" 0644; then IS_CHANGED=yes; fi
}

install() {
    need_root
    get_server
    if [ -z "$PORT" ]; then PORT=6380; ! is_installed || PORT=$(configured_port); fi
    make_files
    if has_systemd; then
        systemctl daemon-reload
        systemctl enable --quiet "$NAME"
        if ! systemctl is-active --quiet "$NAME"; then
            is_taken "$PORT" && ! is_supervised && die "$HOST:$PORT is taken by another program"
            stop_plain
            systemctl start "$NAME"
        elif [ "$IS_CHANGED" = yes ]; then
            systemctl restart "$NAME"
        fi
    else
        [ "$IS_CHANGED" = no ] || stop_plain
        is_supervised || start_plain
        [ -n "$PREFIX" ] || say "systemd is off here: run this again after the machine restarts"
    fi
    wait_until_it_answers
    say "running on $HOST:$PORT"
    print_env
}

# The first line is for bash, the second for PowerShell; both can be evaluated by bash.
print_env() {
    need_root
    is_installed || die "it is not installed"
    local url
    url="redis://:$(cat "$SECRET")@$HOST:$(configured_port)/0"
    echo "export LIBRARY_OF_CONTEXT_REDIS_URL='$url'"
    echo "# PowerShell: \$env:LIBRARY_OF_CONTEXT_REDIS_URL = '$url'"
}

status() {
    need_root
    is_installed || { echo "$NAME: not installed"; exit 4; }
    if ! answers; then echo "$NAME: installed, and not running on $HOST:$(configured_port)"; exit 3; fi
    local by="a loop in wsl-redis-install.sh (systemd is off)"
    if has_systemd; then by="systemd"; fi
    cat <<STATUS
$NAME: running on $HOST:$(configured_port)
  version   Redis $(info redis_version)
  kept up   by $by
  memory    $(info used_memory_human) of $(info maxmemory_human), then $(info maxmemory_policy)
  password  $SECRET
STATUS
}

uninstall() {
    need_root
    if has_systemd; then
        systemctl disable --now --quiet "$NAME" 2>/dev/null || true
    fi
    if [ -d "$STATE" ]; then stop_plain; fi
    rm -rf "$ETC" "$STATE" "$BIN"
    rm -f "$UNIT"
    if has_systemd; then systemctl daemon-reload; fi
    if [ -z "$PREFIX" ] && id "$NAME" >/dev/null 2>&1; then userdel "$NAME"; fi
    say "removed; the package redis-tools stays: sudo apt-get remove redis-tools"
}

main() {
    parse "$@"
    case $ACTION in
        install) install ;;
        print_env) print_env ;;
        status) status ;;
        supervise) supervise ;;
        uninstall) uninstall ;;
    esac
}

# In one go, so that nothing is read from this file any more while it runs.
main "$@"; exit
