# Written by Saltern: Slurm's programs and manuals.
export PATH="$PATH:/opt/slurm/current/bin"
export MANPATH="${MANPATH:-}:/opt/slurm/current/share/man"
