# Start the gateway on Windows; arguments go on to `library-of-context serve`.
$ErrorActionPreference = "Stop"
$Root = Split-Path -Parent $PSScriptRoot
$Python = Join-Path $Root ".venv\Scripts\python.exe"
$Stamp = Join-Path $Root ".venv\requirements.lock.installed"
$Wanted = (Get-Content -Raw (Join-Path $Root "pyproject.toml")) + (Get-Content -Raw (Join-Path $Root "requirements.lock"))
function Invoke-Checked { & $args[0] $args[1..($args.Length - 1)] | Out-Host; if ($LASTEXITCODE) { exit $LASTEXITCODE } }
if (-not ((Test-Path $Python) -and (Test-Path $Stamp) -and ((Get-Content -Raw $Stamp) -ceq $Wanted))) {
    python -c "import sys; sys.exit(sys.version_info < (3, 11))"
    if ($LASTEXITCODE) { [Console]::Error.WriteLine("Python 3.11 or later is needed."); exit 2 }
    if (-not (Test-Path $Python)) { Invoke-Checked python -m venv (Join-Path $Root ".venv") }
    [Console]::Error.WriteLine("Installing requirements.lock into .venv (once; a minute or two) ...")
    Invoke-Checked $Python -m pip install --disable-pip-version-check --quiet --require-hashes -r (Join-Path $Root "requirements.lock")
    Invoke-Checked $Python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable $Root
    & (Join-Path $Root ".venv\Scripts\library-of-context.exe") model install | Out-Host
    Set-Content -NoNewline -Path $Stamp -Value $Wanted
}
& (Join-Path $Root ".venv\Scripts\library-of-context.exe") serve @args
exit $LASTEXITCODE
