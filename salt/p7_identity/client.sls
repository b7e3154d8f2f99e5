# Users and groups of the directory resolve here, through SSSD; only login hosts let them in.
{%- set directory = salt['saltern.view']('directory') %}
{%- set roles = salt['saltern.view']('roles') %}
{%- set sssd = salt['saltern.platform']().sssd %}
{%- set ssh = salt['saltern.platform']().ssh %}
{%- set before = salt['saltern.phase_before']('p7_identity') %}
{%- if directory.kind == 'none' %}
include:
  - {{ before }}
{%- else %}
include:
  - {{ before }}
  - p7_identity.authority

"client: packages":
  pkg.installed:
    - name: {{ sssd.packages[0] }}
    - pkgs: {{ sssd.packages | json }}
    - require:
      - sls: {{ before }}

{%- if 'controller' in roles %}
"client: ldapsearch":
  pkg.installed:
    - name: {{ salt['saltern.platform']().openldap.client }}
    - require:
      - sls: {{ before }}
{%- endif %}

"client: configuration":
  secret.file:
    - name: /etc/sssd/sssd.conf
    - text: {{ salt['sssd.conf_text']() | json }}
    - user: root
    - group: root
    - mode: '{{ sssd.conf_mode }}'
    - require:
      - pkg: "client: packages"

"client: PAM and NSS":
  sssd.enabled:
    - name: PAM and NSS
    - require:
      - pkg: "client: packages"

# It may start before any server does: it asks again within seconds, and the gate waits for an answer.
"client: sssd":
  daemon.current:
    - name: sssd
    - files:
      - /etc/sssd/sssd.conf
      - /etc/saltern/directory-ca.pem
    - require:
      - secret: "client: configuration"
      - sssd: "client: PAM and NSS"
      - sls: p7_identity.authority

{%- if 'login' in roles %}
"client: OpenSSH":
  pkg.installed:
    - name: {{ ssh.package }}
    - require:
      - sls: {{ before }}

"client: keys from the directory":
  file.managed:
    - name: /etc/ssh/sshd_config.d/60-saltern.conf
    - source: salt://p7_identity/files/sshd.conf
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - pkg: "client: OpenSSH"

"client: sshd":
  daemon.current:
    - name: {{ ssh.service }}
    - files: [/etc/ssh/sshd_config.d/60-saltern.conf]
    - require:
      - file: "client: keys from the directory"
      - daemon: "client: sssd"
{%- endif %}
{%- endif %}
