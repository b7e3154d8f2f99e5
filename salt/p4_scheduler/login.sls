# A login host: sackd keeps the controllers' configuration here for the users' commands. A node's slurmd does that too.
{%- set slurm = salt['saltern.view']('slurm') %}
include:
  - p4_scheduler.deployed

"login: waits for the controller":
  saltern.waited:
    - name: slurmctld
    - host: {{ salt['saltern.view']('peers:controller')[0].name }}
    - port: {{ slurm.ports.slurmctld }}
    - timeout: {{ salt['saltern.view']('waits:slurmctld_s') }}
    - what: slurmctld
    - require:
      - sls: p4_scheduler.deployed

{%- if 'sackd' in salt['slurm_cluster.daemons']() %}
"login: unit":
  file.managed:
    - name: /etc/systemd/system/sackd.service
    - source: salt://p4_scheduler/files/sackd.service
    - template: jinja
    - context:
        servers: {{ salt['slurm_cluster.servers']() }}
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - sls: p1_foundation

"login: sackd":
  daemon.current:
    - name: sackd
    - files: [/etc/systemd/system/sackd.service]
    - require:
      - saltern: "login: waits for the controller"
      - file: "login: unit"
{%- endif %}
