"""A certificate authority for Saltern's own servers. Only the master uses it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey

_CA_DAYS = 20 * 365
_SERVER_DAYS = 825  # what clients of today accept at most for a server (CA/Browser Forum, 2020)
_RENEWED_AT = 3  # made anew when less than a third of its time is left
_BACK = datetime.timedelta(hours=1)  # clocks may differ while hosts are set up


def new_key() -> str:
    """A private key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode("ascii")


def authority(key: str, name: str, now: datetime.datetime) -> str:
    """The authority's own certificate, PEM."""
    issuer = _load(key)
    subject = _name(name)
    return _pem(
        _builder(subject, subject, issuer, now, _CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(issuer.public_key()), critical=False
        )
        .sign(issuer, hashes.SHA256())
    )


def server(ca_key: str, ca: str, key: str, names: Sequence[str], now: datetime.datetime) -> str:
    """A certificate of a server key for these names, PEM."""
    issuer, own, above = _load(ca_key), _load(key), x509.load_pem_x509_certificate(ca.encode())
    return _pem(
        _builder(_name(names[0]), above.subject, own, now, _SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), critical=False
        )
        .sign(issuer, hashes.SHA256())
    )


def is_of(certificate: str, key: str) -> bool:
    """Whether a certificate is of this key."""
    found = x509.load_pem_x509_certificate(certificate.encode())
    return found.public_key() == _load(key).public_key()


def fits(certificate: str, ca: str, key: str, names: Sequence[str], now: datetime.datetime) -> bool:
    """Whether a server's certificate is of this authority and key, for these names, and has time
    left."""
    found = x509.load_pem_x509_certificate(certificate.encode())
    above = x509.load_pem_x509_certificate(ca.encode())
    listed = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    whole = found.not_valid_after_utc - found.not_valid_before_utc
    try:
        found.verify_directly_issued_by(above)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return (
        found.public_key() == _load(key).public_key()
        and listed.get_values_for_type(x509.DNSName) == list(names)
        and found.not_valid_after_utc - now > whole / _RENEWED_AT
    )


def _load(key: str) -> Key:
    found = serialization.load_pem_private_key(key.encode(), password=None)
    assert isinstance(found, ec.EllipticCurvePrivateKey)  # we made it
    return found


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACK)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")
