# A scheduled task that starts the gateway when you log on, and again when it fails.
#
#   powershell -ExecutionPolicy Bypass -File library-of-context-task.ps1              # install and start
#   powershell -ExecutionPolicy Bypass -File library-of-context-task.ps1 -Remove      # stop and remove
#
# A task and no service: a service would run as another user, whose settings, keys and database are
# not yours, and needs a program of its own to speak to the service manager. -Program is the
# library-of-context.exe of the virtual environment; upstream keys come from your user's environment.
param(
    [string]$Program = (Join-Path $env:LOCALAPPDATA "library-of-context\venv\Scripts\library-of-context.exe"),
    [string]$TaskName = "LibraryOfContext",
    [switch]$Remove
)
$ErrorActionPreference = "Stop"

if ($Remove) {
    Stop-ScheduledTask -TaskName $TaskName -ErrorAction SilentlyContinue
    Unregister-ScheduledTask -TaskName $TaskName -Confirm:$false
    Write-Output "$TaskName is removed; the database is left where it is."
    exit 0
}

if (-not (Test-Path $Program)) {
    [Console]::Error.WriteLine("There is no $Program; name it with -Program.")
    exit 2
}

$Action = New-ScheduledTaskAction -Execute $Program -Argument "serve"
$Trigger = New-ScheduledTaskTrigger -AtLogOn -User "$env:USERDOMAIN\$env:USERNAME"
$Settings = New-ScheduledTaskSettingsSet -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries `
    -ExecutionTimeLimit ([TimeSpan]::Zero) -MultipleInstances IgnoreNew `
    -RestartCount 10 -RestartInterval (New-TimeSpan -Minutes 1)
$Principal = New-ScheduledTaskPrincipal -UserId "$env:USERDOMAIN\$env:USERNAME" -LogonType Interactive -RunLevel Limited
Register-ScheduledTask -TaskName $TaskName -Action $Action -Trigger $Trigger -Settings $Settings `
    -Principal $Principal -Description "Library of Context: an OpenAI-compatible proxy with a fixed context budget" `
    -Force | Out-Null
Start-ScheduledTask -TaskName $TaskName
Write-Output "$TaskName is installed and started; library-of-context status tells how it is."
