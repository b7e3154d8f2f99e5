# An example plan with a directory of its own: two OpenLDAP servers, SSSD on every Slurm host, and accounts that follow the
# directory's groups (docs/directory.md). The lab runs it as `lab/lab cluster --topology directory`.
saltern:
  cluster:
    name: dirlab
    domain: dir.saltern
  os:
    name: Debian
    release: "13"

  hosts:
    mgmt01:
      roles: [controller, database, builder]
      address: 10.213.0.11
    dir[01-02]:
      roles: [directory]
      address: 10.213.0.[15-16]
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

  foundation:
    time:
      serve: [mgmt01]

  directory:
    login_groups: [hpc]                 # who may log in on login hosts

  people:
    users:
      ada: {uid: 21001, name: Ada Quill}
      ben: {uid: 21002, name: Ben Marsh}
      cleo: {uid: 21003, name: Cleo Dune}
    groups:
      hpc: {gid: 31000, members: [ada, ben, cleo]}
      physics: {gid: 31001, members: [ada]}
      physics-leads: {gid: 31002, members: [ada]}

  accounts:
    enforce: [associations, limits]
    tree:
      science: {fairshare: 100}
    directory:
      groups:
        physics: {account: physics, parent: science, fairshare: 10, coordinators: physics-leads, leaving: remove}
