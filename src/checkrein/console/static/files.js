// A file chosen here is read into the text field beside it, so that the form needs no upload.

for (const box of document.querySelectorAll("[data-file]")) {
  box.hidden = false;
  const input = box.querySelector("[data-into]");
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (file && file.size <= 1 << 20) input.form.elements[input.dataset.into].value = await file.text();
  });
}
