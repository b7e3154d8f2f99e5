# Kernel parameters: in one file for the next boot, and in the kernel now.
{%- set sysctl = salt['saltern.platform']().sysctl %}
include:
  - p1_foundation.packages

"kernel: sysctl program":
  pkg.installed:
    - name: {{ sysctl.package }}
    - require:
      - sls: p1_foundation.packages

"kernel: file":
  file.managed:
    - name: {{ sysctl.conf }}
    - contents: {{ salt['saltern.sysctl_text']() | json }}
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - pkg: "kernel: sysctl program"

{%- for name, value in salt['saltern.sysctl_parameters']() | dictsort %}
"kernel: {{ name }}":
  sysctl.present:
    - name: {{ name }}
    - value: {{ value | json }}
    - config: {{ sysctl.conf }}
    - require:
      - file: "kernel: file"
{%- endfor %}
