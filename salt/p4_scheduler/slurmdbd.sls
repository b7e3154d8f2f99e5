# slurmdbd answers: its configuration is secret from the first byte, its database stands, its port is its own. One in
# reserve starts after the first one answers, because either makes missing tables when it starts.
{%- set files = ['/etc/systemd/system/slurmdbd.service', '/etc/slurm/slurmdbd.conf', '/etc/slurm/jwt_hs256.key'] %}
{%- set view = salt['saltern.view']() %}
{%- set mariadb = salt['slurm_database.here']() %}
{%- set in_reserve = view.host.name != view.peers.database[0].name %}
include:
  - p4_scheduler.conf_dir
  - p4_scheduler.logs
{%- if mariadb %}
  - p4_scheduler.database
{%- endif %}

# First, because it refuses what would start accounting anew, before anything is written.
"slurmdbd: database in place":
  slurm_database.in_place:
    - name: slurmdbd
    - require:
      - sls: p4_scheduler.conf_dir

"slurmdbd: configuration":
  secret.file:
    - name: /etc/slurm/slurmdbd.conf
    - text: {{ salt['slurm_conf.slurmdbd_text']() | json }}
    - user: slurm
    - group: slurm
    - mode: '0600'
    - require:
      - slurm_database: "slurmdbd: database in place"

"slurmdbd: unit":
  file.managed:
    - name: /etc/systemd/system/slurmdbd.service
    - source: salt://p4_scheduler/files/slurmdbd.service
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - sls: p1_foundation

{%- if not mariadb %}
{%- set server = view.peers.mariadb[0] %}

"slurmdbd: waits for MariaDB":
  saltern.waited:
    - name: mariadb
    - host: {{ server.address or server.name }}
    - port: 3306
    - timeout: {{ view.waits.database_s }}
    - what: MariaDB
    - require:
      - sls: p1_foundation
    - require_in:
      - daemon: "slurmdbd: daemon"
{%- endif %}
{%- if in_reserve %}

"slurmdbd: another answers":
  slurm_cluster.slurmdbd_answers:
    - name: slurmdbd
    - timeout: {{ view.waits.slurmdbd_s }}
    - require:
      - sls: p4_scheduler.conf_dir
    - require_in:
      - daemon: "slurmdbd: daemon"
{%- endif %}

"slurmdbd: daemon":
  daemon.current:
    - name: slurmdbd
    - files: {{ files | json }}
    - port: {{ view.slurm.ports.slurmdbd }}
    - require:
      - secret: "slurmdbd: configuration"
      - file: "slurmdbd: unit"
      - sls: p4_scheduler.logs
{%- if mariadb %}
      - sls: p4_scheduler.database
{%- endif %}

"slurmdbd: answers":
  slurm_cluster.slurmdbd_answers:
    - name: slurmdbd
    - timeout: {{ view.waits.database_s }}
    - require:
      - daemon: "slurmdbd: daemon"
