# Install Redis inside WSL for a gateway on Windows; arguments go on to wsl-redis-install.sh.
# -Distribution NAME picks one of `wsl --list`; -Persist keeps the address for new terminals too.
param([string]$Distribution, [switch]$Persist, [Parameter(ValueFromRemainingArguments)][string[]]$Rest)
$ErrorActionPreference = "Stop"
if (-not (Get-Command wsl.exe -ErrorAction SilentlyContinue)) {
    [Console]::Error.WriteLine("WSL is needed: wsl --install -d Ubuntu"); exit 2
}
$Wsl = if ($Distribution) { @("-d", $Distribution, "-u", "root") } else { @("-u", "root") }
$Script = Join-Path (Split-Path -Parent $PSScriptRoot) "wsl-redis-install.sh"
$Path = (& wsl.exe @Wsl "--" wslpath -a ($Script -replace "\\", "/")).Trim()
if ($LASTEXITCODE) { exit $LASTEXITCODE }
$Printed = & wsl.exe @Wsl "--" bash $Path @Rest
$Code = $LASTEXITCODE
$Printed | Out-Host
$Line = $Printed | Select-String "env:LIBRARY_OF_CONTEXT_REDIS_URL = '([^']+)'"
if ($Line) {
    $env:LIBRARY_OF_CONTEXT_REDIS_URL = $Line.Matches[0].Groups[1].Value
    if ($Persist) { [Environment]::SetEnvironmentVariable("LIBRARY_OF_CONTEXT_REDIS_URL", $env:LIBRARY_OF_CONTEXT_REDIS_URL, "User") }
}
exit $Code
