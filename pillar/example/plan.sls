# An example plan, and the one that the lab runs: four hosts, one partition. Every key is described in pillar/schema.json.
saltern:
  cluster:
    name: lab
    domain: lab.saltern
  os:
    name: Debian
    release: "13"

  hosts:
    mgmt01:
      roles: [controller, database, builder]
      address: 10.213.0.11
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
    users:
      researcher: {uid: 20001, gid: 20001}
    time:
      serve: [mgmt01]
