# The directory changed, says whoever changed it: Slurm's accounts follow.
"directory changed":
  runner.saltern.sync_accounts: []
