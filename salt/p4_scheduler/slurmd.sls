# A node: its slurmd asks the controllers for everything, and starts once their running configuration holds the node.
{%- set slurm = salt['saltern.view']('slurm') %}
include:
  - p4_scheduler.deployed
  - p4_scheduler.logs

"slurmd: spool folder":
  file.directory:
    - name: {{ slurm.spool_dir }}
    - user: root
    - group: root
    - mode: '0755'
    - makedirs: True
    - require:
      - sls: p1_foundation

"slurmd: unit":
  file.managed:
    - name: /etc/systemd/system/slurmd.service
    - source: salt://p4_scheduler/files/slurmd.service
    - template: jinja
    - context:
        servers: {{ salt['slurm_cluster.servers']() }}
        node: {{ salt['slurm_nodes.slurmd_arguments']() | json }}
        port: {{ slurm.ports.slurmd }}
        spool_dir: {{ slurm.spool_dir }}
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - sls: p1_foundation

"slurmd: folder of programs":
  file.directory:
    - name: /usr/lib/saltern
    - user: root
    - group: root
    - mode: '0755'
    - require:
      - sls: p1_foundation

# slurm.conf names it: a slurmd that does not find it logs an error when it starts and at each interval (24.11.5).
"slurmd: health check program":
  file.managed:
    - name: /usr/lib/saltern/health_program
    - source: salt://p4_scheduler/files/health_program
    - template: jinja
    - context:
        python: {{ salt['saltern.platform']().python.path }}
    - user: root
    - group: root
    - mode: '0755'
    - require:
      - file: "slurmd: folder of programs"

"slurmd: waits for the controller":
  slurm_cluster.node_known:
    - name: slurmctld
    - timeout: {{ salt['saltern.view']('waits:slurmctld_s') }}
    - require:
      - sls: p4_scheduler.deployed

"slurmd: held until its gates are open":
  node_join.held:
    - name: join
    - require:
      - slurm_cluster: "slurmd: waits for the controller"

"slurmd: daemon":
  daemon.current:
    - name: slurmd
    - files: [/etc/systemd/system/slurmd.service]
    - port: {{ slurm.ports.slurmd }}
    - require:
      - node_join: "slurmd: held until its gates are open"
      - file: "slurmd: spool folder"
      - file: "slurmd: unit"
      - file: "slurmd: health check program"
      - sls: p4_scheduler.logs
