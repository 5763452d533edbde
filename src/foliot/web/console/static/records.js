// Reads a chosen file into the text field beside it. Without script the text can be pasted.
for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
for (const input of document.querySelectorAll("input[type=file][data-into]")) {
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (file) document.getElementById(input.dataset.into).value = await file.text();
  });
}
