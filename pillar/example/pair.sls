# An example plan with a second host for each daemon of the control plane, but for MariaDB: docs/failover.md. The lab
# runs it as `lab/lab cluster --topology pair`.
saltern:
  cluster:
    name: pair
    domain: pair.saltern
  os:
    name: Debian
    release: "13"

  hosts:
    mgmt01:
      roles: [controller, database, builder]
      address: 10.213.0.11
    mgmt02:
      roles: [controller, database]
      address: 10.213.0.13
    sql01:
      roles: [mariadb]
      address: 10.213.0.14
    login01:
      roles: [login]
      address: 10.213.0.12
    node[01-02]:
      roles: [compute]
      address: 10.213.0.[21-22]
      node_type: small

  node_types:
    small:
      cpus: 2
      cores_per_socket: 2
      memory_mb: 8000

  partitions:
    batch:
      nodes: node[01-02]
      default: true
      max_time: 1-00:00:00

  slurm:
    state_dir: /srv/slurmctld          # on shared storage
    parameters:
      SlurmctldTimeout: 10             # seconds until the other controller takes over; Slurm's own default is 120

  foundation:
    users:
      researcher: {uid: 20001, gid: 20001}
    time:
      serve: [mgmt01, mgmt02]
