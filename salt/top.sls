# Who gets what: role x phase. Roles come from the plan, through the pillar that the master makes; never from grains.
# The order is in the requisites; a phase's own name stands for its gate.
base:
  '*':
    - p0_plan
    - p1_foundation
    - p1_foundation.minion
    - p1_foundation.names
    - p1_foundation.accounts
    - p1_foundation.time
    - p1_foundation.limits
    - p1_foundation.kernel

  'saltern:roles:builder':
    - match: pillar
    - p4_scheduler
    - p4_scheduler.build

  'saltern:roles:database':
    - match: pillar
    - p1_foundation.munge
    - p4_scheduler
    - p4_scheduler.deployed
    - p4_scheduler.slurmdbd
    - p7_identity
    - p7_identity.client

  'saltern:roles:mariadb':
    - match: pillar
    - p4_scheduler
    - p4_scheduler.database

  'saltern:roles:controller':
    - match: pillar
    - p1_foundation.munge
    - p4_scheduler
    - p4_scheduler.deployed
    - p4_scheduler.slurmctld
    - p7_identity
    - p7_identity.client
    - p7_identity.accounts

  'saltern:roles:login':
    - match: pillar
    - p1_foundation.munge
    - p4_scheduler
    - p4_scheduler.deployed
    - p4_scheduler.login
    - p7_identity
    - p7_identity.client

  'saltern:roles:compute':
    - match: pillar
    - p1_foundation.munge
    - p4_scheduler
    - p4_scheduler.deployed
    - p4_scheduler.slurmd
    - p5_environment
    - p5_environment.health
    - p7_identity
    - p7_identity.client
    - service.node

  'saltern:roles:gpu':
    - match: pillar
    - p1_foundation.munge
    - p4_scheduler
    - p4_scheduler.deployed
    - p4_scheduler.slurmd
    - p5_environment
    - p5_environment.health
    - p7_identity
    - p7_identity.client
    - service.node

  'saltern:roles:directory':
    - match: pillar
    - p7_identity
    - p7_identity.server
    - p7_identity.backup
