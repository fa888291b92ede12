"""Pack the extension as a .vsix: ``python editors/vscode/pack.py [FILE]``.

A .vsix is a zip file with a list of content types, a manifest, and the extension in a folder.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

FOLDER = Path(__file__).parent
FILES = (
    *("package.json", "extension.js", "client.js", "language-configuration.json", "README.md"),
    "syntaxes/vsm.tmLanguage.json",
)
LICENSE = FOLDER.parents[1] / "LICENSE"
_TIME = (2026, 1, 1, 0, 0, 0)  # of all entries, so that equal files make an equal package
_KINDS = {
    **{".json": "application/json", ".js": "application/javascript", ".md": "text/markdown"},
    **{".txt": "text/plain", ".vsixmanifest": "text/xml"},
}
_ASSETS = {
    "Code.Manifest": "extension/package.json",
    "Services.Content.Details": "extension/README.md",
    "Services.Content.License": "extension/LICENSE.txt",
}


def content_types() -> str:
    """Return the types of files by their endings."""
    rows = (f'<Default Extension="{end}" ContentType="{kind}"/>' for end, kind in _KINDS.items())
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{space}">{"".join(rows)}</Types>'


def manifest(package: dict[str, object]) -> str:
    """Return the manifest for the facts of ``package.json``."""
    names = {"Id": "name", "Version": "version", "Publisher": "publisher"}
    identity = " ".join(f"{key}={quoteattr(str(package[own]))}" for key, own in names.items())
    engine = package["engines"]
    assert isinstance(engine, dict)
    categories = package["categories"]
    assert isinstance(categories, list)
    version = quoteattr(engine["vscode"])
    assets = "\n".join(
        f'<Asset Type="Microsoft.VisualStudio.{kind}" Path="{path}" Addressable="true"/>'
        for kind, path in _ASSETS.items()
    )
    space = "http://schemas.microsoft.com/developer/vsx-schema/2011"
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="{space}">
<Metadata>
<Identity Language="en-US" {identity}/>
<DisplayName>{escape(str(package["displayName"]))}</DisplayName>
<Description xml:space="preserve">{escape(str(package["description"]))}</Description>
<Categories>{escape(",".join(categories))}</Categories>
<License>extension/LICENSE.txt</License>
<Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value={version}/></Properties>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>
{assets}
</Assets>
</PackageManifest>
"""


def pack(out: Path) -> Path:
    """Write the package to ``out``; return the path."""
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    parts = {"[Content_Types].xml": content_types(), "extension.vsixmanifest": manifest(package)}
    for name in FILES:
        parts[f"extension/{name}"] = (FOLDER / name).read_text(encoding="utf-8")
    parts["extension/LICENSE.txt"] = LICENSE.read_text(encoding="utf-8")
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(zipfile.ZipInfo(name, _TIME), text, zipfile.ZIP_DEFLATED)
    return out


if __name__ == "__main__":
    version = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))["version"]
    default = FOLDER.parents[1] / "build" / f"emu2-vsm-{version}.vsix"
    print(pack(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
