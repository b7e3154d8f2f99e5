# Limits for both ways in: PAM for logins, systemd for services. What only one of them has, half the jobs miss.
{%- set limits = salt['saltern.view']('foundation:limits') %}
{%- set platform = salt['saltern.platform']().limits %}
include:
  - p0_plan

"limits: logins":
  file.managed:
    - name: {{ platform.pam }}
    - source: salt://p1_foundation/files/limits.conf
    - template: jinja
    - context:
        limits: {{ limits | json }}
    - user: root
    - group: root
    - mode: '0644'
    - makedirs: True
    - require:
      - sls: p0_plan

"limits: services":
  file.managed:
    - name: {{ platform.systemd }}
    - source: salt://p1_foundation/files/system.conf
    - template: jinja
    - context:
        limits: {{ limits | json }}
    - user: root
    - group: root
    - mode: '0644'
    - makedirs: True
    - require:
      - sls: p0_plan

# systemd reads its own defaults again only when it is told to; services that start later get them.
"limits: systemd reads its defaults":
  system_repair.limits_read:
    - name: systemd
    - limits: {{ limits | json }}
    - require:
      - file: "limits: services"
