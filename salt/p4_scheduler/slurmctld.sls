# The controller: slurmdbd answers and knows the cluster before slurmctld first starts; a changed configuration is
# judged by Slurm, then taken by the running daemon without ending a job.
{%- set slurm = salt['saltern.view']('slurm') %}
include:
  - p4_scheduler.conf_dir
  - p4_scheduler.logs
{%- if 'database' in salt['saltern.view']('roles') %}
  - p4_scheduler.slurmdbd
{%- endif %}

# First, because it refuses what would harm a running cluster, before anything is written.
"slurmctld: configuration":
  slurm_conf.managed:
    - name: /etc/slurm
    - require:
      - sls: p4_scheduler.conf_dir

"slurmctld: state folder":
  file.directory:
    - name: {{ slurm.state_dir }}
    - user: slurm
    - group: slurm
    - mode: '0700'
    - makedirs: True
    - require:
      - slurm_conf: "slurmctld: configuration"

{%- if salt['saltern.view']('peers:controller') | length > 1 %}
# Before the daemon: a second controller with a state of its own would take over without the jobs.
"slurmctld: shared state":
  slurm_state.shared:
    - name: {{ slurm.state_dir }}
    - timeout: {{ salt['saltern.view']('waits:slurmctld_s') }}
    - require:
      - file: "slurmctld: state folder"
    - require_in:
      - daemon: "slurmctld: daemon"
{%- endif %}

"slurmctld: unit":
  file.managed:
    - name: /etc/systemd/system/slurmctld.service
    - source: salt://p4_scheduler/files/slurmctld.service
    - template: jinja
    - context:
        state_dir: {{ slurm.state_dir }}
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - slurm_conf: "slurmctld: configuration"

"slurmctld: waits for slurmdbd":
  slurm_cluster.slurmdbd_answers:
    - name: slurmdbd
    - timeout: {{ salt['saltern.view']('waits:slurmdbd_s') }}
    - require:
      - slurm_conf: "slurmctld: configuration"
{%- if 'database' in salt['saltern.view']('roles') %}
      - sls: p4_scheduler.slurmdbd
{%- endif %}

"slurmctld: cluster in accounting":
  slurm_cluster.registered:
    - name: {{ salt['saltern.view']('cluster:name') }}
    - require:
      - slurm_cluster: "slurmctld: waits for slurmdbd"

# Before the daemon: a running one takes the change without a restart, and refuses what it cannot use.
"slurmctld: running configuration":
  slurm_controller.applied:
    - name: slurmctld
    - require:
      - slurm_cluster: "slurmctld: cluster in accounting"

"slurmctld: daemon":
  daemon.current:
    - name: slurmctld
    - files: [/etc/systemd/system/slurmctld.service, /etc/slurm/jwt_hs256.key]
    - port: {{ slurm.ports.slurmctld }}
    - require:
      - slurm_controller: "slurmctld: running configuration"
      - file: "slurmctld: state folder"
      - file: "slurmctld: unit"
      - sls: p4_scheduler.logs

# Partitions and topology are right from the start; jobs go to a node once it has joined.
"slurmctld: declared nodes are held":
  node_join.newcomers_held:
    - name: join
    - require:
      - daemon: "slurmctld: daemon"
